package app

import (
	"context"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// changed hears the rebalancer say that the ledger has something newer.
func (g *gateway) changed(m *nats.Msg) {
	var c wire.Changed
	if err := wire.Decode(m.Data, &c); err != nil {
		g.loader.Look() // whatever it was, something happened
		return
	}
	g.loader.Announce(telemetry.Extract(context.Background(), m.Header), c.Revision)
}
