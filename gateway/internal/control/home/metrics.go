package home

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/telemetry"
)

// metrics of both sides; one series per outcome.
type metrics struct{ asks, serves metric.Int64Counter }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := new(metrics)
	var errs [2]error
	m.asks, errs[0] = meter.Int64Counter("partidor.home.asked", metric.WithUnit("{request}"),
		metric.WithDescription("Requests for tiny limits that are at home elsewhere, by what came of them."))
	m.serves, errs[1] = meter.Int64Counter("partidor.home.served", metric.WithUnit("{request}"),
		metric.WithDescription("Requests of other regions for tiny limits, by what came of them."))
	return m, errors.Join(errs[:]...)
}

func (m *metrics) asked(outcome string)  { count(m.asks, outcome) }
func (m *metrics) served(outcome string) { count(m.serves, outcome) }

func count(c metric.Int64Counter, outcome string) {
	c.Add(context.Background(), 1, metric.WithAttributes(telemetry.AttributeOutcome.String(outcome)))
}
