package usage

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
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
	share, err := meter.Float64ObservableGauge("partidor.tenant.share", metric.WithUnit("1"),
		metric.WithDescription("Share of a named tenant's limit that this instance last saw its region hold, by route; all regions' together are 1."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		t.each(func(key limit.Key, c *counter) {
			if !named[key.Tenant] {
				return
			}
			tenant, route := telemetry.AttributeTenant.String(key.Tenant), telemetry.AttributeRoute.String(key.Route)
			observe := func(outcome string, n uint64) {
				o.ObserveInt64(tokens, int64(n), metric.WithAttributes(tenant, route, telemetry.AttributeOutcome.String(outcome)))
			}
			observe("admitted", c.admitted.Load())
			observe("refused", c.refused.Load())
			if s := c.share.Load(); s > 0 {
				o.ObserveFloat64(share, float64(s)/float64(limit.Whole), metric.WithAttributes(tenant, route))
			}
		})
		return nil
	}, tokens, share)
	return err
}
