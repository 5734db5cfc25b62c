package admit

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	mnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tnoop "go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/fallback"
)

// Options are what an Admitter is made of. Rules and Store are needed, all else has a default.
type Options struct {
	Rules *snapshot.Holder
	// Store must not keep the slice of limits that Take is given once it has answered without error.
	Store bucket.Store
	// Counter of usage; nil counts nothing.
	Counter Counter
	// Deadline of one decision of Store. Default 5 ms. Afterwards the fallback decides.
	Deadline time.Duration
	// Elsewhere consumes tiny limits at their home region; nil decides every limit here.
	Elsewhere Elsewhere
	// Instances is the number of live instances in this region, this one included, from heartbeats. It is called on the
	// request path: one atomic load. Default: always 1.
	Instances func() int
	// Fenced tells that this region may use no more than its floor; as cheap as Instances. Default: never.
	Fenced func() bool
	// Strict lets the fallback use the floor's slice only.
	Strict bool
	// MaxBuckets bounds the keys that the fallback remembers. Default fallback.DefaultMaxBuckets.
	MaxBuckets int
	// Breaker says when Store is no longer asked. Slow defaults to Deadline; OnChange is not used.
	Breaker fallback.BreakerOptions
	// Prefetch bounds the tokens taken ahead for rules that allow it.
	Prefetch Prefetch
	// DeniedCache is how long a refusal may be answered from memory: default and at most 100 ms, negative for never.
	DeniedCache time.Duration
	// MaxHot bounds the keys with a remembered refusal or tokens taken ahead. Default 16,384.
	MaxHot int

	// Logger gets one line per change of the breaker and nothing per request.
	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
}

// Prefetch bounds the tokens that an instance holds ahead of requests. Whatever these say, all instances together hold at
// most 5 % of a slice's capacity.
type Prefetch struct {
	Disabled bool
	// MaxTokens per key. Default 50.
	MaxTokens int64
	// Horizon of this instance's own rate that one fetch covers. Default 100 ms.
	Horizon time.Duration
}

const (
	defaultDeadline    = 5 * time.Millisecond
	defaultMaxHot      = 16_384
	defaultMaxTokens   = 50
	defaultHorizon     = 100 * time.Millisecond
	longestDeniedCache = 100 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	if o.Breaker.Slow <= 0 {
		o.Breaker.Slow = o.Deadline
	}
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	if o.Fenced == nil {
		o.Fenced = func() bool { return false }
	}
	if o.Prefetch.MaxTokens <= 0 {
		o.Prefetch.MaxTokens = defaultMaxTokens
	}
	if o.Prefetch.Horizon <= 0 {
		o.Prefetch.Horizon = defaultHorizon
	}
	if o.DeniedCache == 0 || o.DeniedCache > longestDeniedCache {
		o.DeniedCache = longestDeniedCache
	}
	if o.MaxHot <= 0 {
		o.MaxHot = defaultMaxHot
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = tnoop.NewTracerProvider().Tracer("")
	}
	if o.Meter == nil {
		o.Meter = mnoop.NewMeterProvider().Meter("")
	}
	return o
}
