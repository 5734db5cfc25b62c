package app

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Term this process leads in, 0 if it does not.
func (a *app) Term() int64 { return a.election.Term() }

// Leader as last seen.
func (a *app) Leader() string {
	if a.lease != nil {
		row, _, _ := a.lease.seen()
		return row.Holder
	}
	if a.election.Term() != 0 {
		return a.config.Instance
	}
	return ""
}

// ledgerSilence is how long the lease row may not have been read before the ledger counts as away.
const ledgerSilence = 5 * time.Second

// notReady lists what keeps this process from working.
func (a *app) notReady() []string {
	reasons := []string{}
	if !a.conn.IsConnected() {
		reasons = append(reasons, "NATS is away")
	}
	if a.lease != nil {
		_, at, err := a.lease.seen()
		switch {
		case at.IsZero() && err == nil:
			reasons = append(reasons, "the ledger has not been read yet")
		case time.Since(at) > ledgerSilence:
			reasons = append(reasons, fmt.Sprintf("the ledger is away: %v", err))
		}
	}
	if a.memory != nil {
		if err := a.memory.Fault(); err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return reasons
}

// watchDecisions publishes how old the last decision of any rebalancer is, and whether this one leads. An alert on the age
// needs no rebalancer that works, only one that can still read the ledger.
func (a *app) watchDecisions(meter metric.Meter) error {
	age, err := meter.Float64ObservableGauge("partidor.rebalancer.cycle.age", metric.WithUnit("s"),
		metric.WithDescription("Time since the last committed cycle of any rebalancer."))
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	leading, err := meter.Int64ObservableGauge("partidor.rebalancer.leading", metric.WithUnit("{leader}"), metric.WithDescription("1 while this rebalancer leads."))
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	connected, err := meter.Int64ObservableGauge("partidor.nats.connected", metric.WithUnit("{connection}"),
		metric.WithDescription("1 while connected to NATS."))
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(leading, truth(a.Term() != 0))
		o.ObserveInt64(connected, truth(a.conn.IsConnected()))
		o.ObserveFloat64(age, a.decisionAge().Seconds())
		return nil
	}, age, leading, connected)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// decisionAge counts from the start of this process where nothing has been decided yet.
func (a *app) decisionAge() time.Duration {
	if a.lease == nil {
		if last := a.runner.Last(); last.Err == nil && !last.At.IsZero() {
			return time.Since(last.At)
		}
		return time.Since(a.started)
	}
	row, at, _ := a.lease.seen()
	if at.IsZero() || row.DecidedAgo < 0 {
		return time.Since(a.started)
	}
	return row.DecidedAgo + time.Since(at) // PostgreSQL's clock took the first part, ours the second
}
