package app

import (
	"context"

	"partidor.dev/partidor/gateway/internal/control/home"
	"partidor.dev/partidor/gateway/internal/hot/admit"
)

// buildHome consumes tiny limits at their home region, and serves the other regions. It takes NATS; without it the gateway
// is alone and decides every limit itself.
func (g *gateway) buildHome(ctx context.Context) (err error) {
	if g.nats == nil || g.redis == nil {
		return nil
	}
	g.home, err = home.New(home.Options{
		Region: g.config.Region, Instance: g.config.Instance, Conn: g.nats, Rules: g.holder, Store: g.store,
		Deadline: g.config.Decision.Deadline, Budget: g.config.Exchange.HomeBudget, Logger: g.logger, Meter: g.meter, Tracer: g.tracer,
	})
	if err != nil {
		return err
	}
	g.holder.ConsumeAtHome()
	g.background.start(ctx, "home", g.home.Run)
	return nil
}

// elsewhere is the home as the request path sees it.
func (g *gateway) elsewhere() admit.Elsewhere {
	if g.home == nil {
		return nil // not an interface around a nil pointer
	}
	return g.home
}
