package app

import (
	"context"
	"time"

	"partidor.dev/partidor/gateway/internal/control/exchange"
	"partidor.dev/partidor/gateway/internal/control/usage"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/rights/redisstore"
)

// maxHot bounds the keys near their limit that the exchange watches.
const maxHot = 65_536

// buildExchange moves rights between the regions. It takes a Redis to keep them in and NATS to send them by.
func (g *gateway) buildExchange(ctx context.Context) error {
	if g.nats == nil || g.redis == nil {
		return nil
	}
	g.heat = exchange.NewHeat(g.table, maxHot)
	store := redisstore.New(redisstore.Options{Client: g.redis, LossHorizon: g.config.Decision.LossHorizon, Fenced: g.guard.Fenced})
	g.life.Tell(store.SetLoss)
	g.sourced = append(g.sourced, store.SetGeneration)
	x, err := exchange.New(exchange.Options{
		Region: g.config.Region, Instance: g.config.Instance, Conn: g.nats,
		Store: store, Rules: g.holder, Heat: g.heat, Leads: g.members.Leads, Policy: g.policy, Credited: g.credited, MarkMoved: g.markMoved,
		Guard:  g.guard,
		Logger: g.logger, Tracer: g.tracer, Meter: g.meter,
	})
	if err != nil {
		return err
	}
	g.exchange.Store(x)
	g.background.start(ctx, "exchange", x.Run)
	return nil
}

// markMoved passes on which keys have moved, so that rights of theirs that are missing are lost ones.
func (g *gateway) markMoved(keys map[limit.Key]exchange.Recorded) {
	if err := g.holder.Update(func(b *snapshot.Builder) error {
		for k, r := range keys {
			b.MarkMoved(k, r.Base)
			b.MarkFloor(k, r.Floor)
		}
		return nil
	}); err != nil {
		g.logger.Warn("keys that have moved are not remembered", "keys", len(keys), "error", err)
	}
}

// credited passes news of gifts on to the request path, once there is one.
func (g *gateway) credited(now time.Time, keys ...limit.Key) {
	if a := g.remembers.Load(); a != nil {
		a.Credited(now, keys...)
	}
}

func (g *gateway) policy() agent.Policy {
	p := agent.DefaultPolicy()
	p.FastLoop = g.config.Exchange.FastLoop != "off" && g.holder.Load().FastLoop()
	return p
}

// counting notes decisions for usage reports and for the exchange.
type counting struct {
	table *usage.Table
	heat  *exchange.Heat // nil without an exchange
}

func (c *counting) Count(key limit.Key, cost int64, allowed bool, d limit.Decision) {
	c.table.Count(key, cost, allowed, d)
	if c.heat != nil && key == d.Key {
		c.heat.Note(&d)
	}
}
