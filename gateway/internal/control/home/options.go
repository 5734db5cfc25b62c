package home

import (
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/rights/home"
)

// Options of a Home. Budget, Trip, Logger, Meter and Tracer have defaults.
type Options struct {
	Region, Instance string
	Conn             *nats.Conn
	Rules            *snapshot.Holder
	// Store is the region's own, asked for requests from elsewhere.
	Store bucket.Store
	// Deadline of one decision of Store.
	Deadline time.Duration
	// Budget is how long an asker waits in all, Trip how long a message takes to another region, about.
	Budget, Trip time.Duration
	Logger       *slog.Logger
	Meter        metric.Meter
	// Tracer makes the spans of both sides.
	Tracer trace.Tracer
}

const (
	defaultDeadline = 5 * time.Millisecond
	defaultTrip     = 40 * time.Millisecond
	// maxKeys bounds the keys whose homes and refusals are remembered, maxServing the requests from elsewhere that are
	// being decided or held; more are dropped, and their askers run out of budget.
	maxKeys    = 16_384
	maxServing = 1_024
)

func (o Options) checked() (Options, error) {
	if o.Region == "" || o.Instance == "" || o.Conn == nil || o.Rules == nil || o.Store == nil {
		return o, errors.New("home: region, instance, connection, rules and store are needed")
	}
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	if o.Budget <= 0 {
		o.Budget = home.Budget
	}
	if o.Trip <= 0 {
		o.Trip = defaultTrip
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noop.NewMeterProvider().Meter("")
	}
	if o.Tracer == nil {
		o.Tracer = tracenoop.Tracer{}
	}
	return o, nil
}
