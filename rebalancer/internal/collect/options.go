package collect

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"partidor.dev/partidor/rebalancer/internal/plan"
)

// Options of a Collector. Zero values are useful except for Conn.
type Options struct {
	// Conn receives the reports. The collector closes its subscriptions, not the connection.
	Conn *nats.Conn
	// Parameters gives the half-lives in force; nil means plan.DefaultParameters.
	Parameters func() plan.Parameters
	// Logger and Meter default to none.
	Logger *slog.Logger
	Meter  metric.Meter
	// Clock defaults to time.Now. Its monotonic part matters, not its wall time.
	Clock func() time.Time

	// Counted is told of every increase of the counters, in tokens.
	Counted func(admitted, refused float64)

	// Window is the length of a measuring window, 5 s by default. It must not be shorter than the reports' interval.
	Window time.Duration
	// SilentAfter without a report or heartbeat an instance counts as gone, and a region without instances as silent;
	// 20 s by default.
	SilentAfter time.Duration
	// ForgetAfter without use a key is forgotten, 15 min by default.
	ForgetAfter time.Duration
	// MaxKeys (500,000), MaxInstances (1,024) and MaxRegions (64) bound the memory.
	MaxKeys      int
	MaxInstances int
	MaxRegions   int
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	bound := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&o.Window, 5*time.Second)
	def(&o.SilentAfter, 20*time.Second)
	def(&o.ForgetAfter, 15*time.Minute)
	bound(&o.MaxKeys, 500_000)
	bound(&o.MaxInstances, 1024)
	bound(&o.MaxRegions, 64)
	if o.Parameters == nil {
		o.Parameters = plan.DefaultParameters
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noop.Meter{}
	}
	if o.Counted == nil {
		o.Counted = func(float64, float64) {}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}
