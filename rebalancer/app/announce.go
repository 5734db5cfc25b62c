package app

import (
	"context"
	"time"

	"partidor.dev/partidor/rebalancer/internal/advise"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// announce tells the gateways of every change of the ledger, so that they need not wait for their next poll. Every
// rebalancer does, leading or not: the word is idempotent, and a change of leaders loses none.
func (a *app) announce(ctx context.Context) {
	sequence := uint64(0)
	changed := func(at limit.Revision) {
		sequence++
		a.runner.Poke()
		data, err := wire.Encode(&wire.Changed{Revision: at, Header: wire.Header{Version: wire.Version, Region: advise.Sender,
			Instance: a.config.Instance, Sequence: sequence, Started: a.started.UnixMilli()}})
		if err == nil {
			err = a.conn.Publish(wire.SubjectChanged, data)
		}
		if err != nil {
			a.telemetry.Logger.Warn("change not announced, gateways will poll", "revision", at, "error", err)
		}
	}
	away := false
	for ctx.Err() == nil {
		err := a.store.Listen(ctx, func(at limit.Revision) { away = false; changed(at) }, a.runner.Request)
		if err != nil && ctx.Err() == nil && !away {
			away = true
			a.telemetry.Logger.Warn("not listening to the ledger, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
