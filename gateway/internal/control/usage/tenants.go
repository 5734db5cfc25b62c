package usage

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/limit"
)

// ObserveTenants gives the named tenants series of their own, per route; all others have none, so that the number of series
// is bounded by the list and not by who calls.
func (t *Table) ObserveTenants(meter metric.Meter, tenants []string) error {
	if len(tenants) == 0 {
		return nil
	}
	named := make(map[string]bool, len(tenants))
	for _, name := range tenants {
		named[name] = true
	}
	tokens, err := meter.Int64ObservableCounter("partidor.tenant.tokens", metric.WithUnit("{token}"),
		metric.WithDescription("Tokens asked for by the tenants that the configuration names, by route and whether they were admitted."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		t.each(func(key limit.Key, c *counter) {
			if !named[key.Tenant] {
				return
			}
			observe := func(outcome string, n uint64) {
				o.ObserveInt64(tokens, int64(n), metric.WithAttributes(
					attribute.String("partidor.tenant", key.Tenant), attribute.String("partidor.route", key.Route), attribute.String("partidor.outcome", outcome)))
			}
			observe("admitted", c.admitted.Load())
			observe("refused", c.refused.Load())
		})
		return nil
	}, tokens)
	return err
}
