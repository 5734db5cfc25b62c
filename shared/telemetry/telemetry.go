package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// scope names this code in telemetry.
const scope = "partidor.dev/partidor/shared/telemetry"

// shutdownTimeout bounds the last export, however patient the caller's context is: a service must be able to stop while
// its collector is away.
const shutdownTimeout = 5 * time.Second

// Options name the service. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over them.
type Options struct {
	Service, Version string
	// Region and Instance become partidor.region and service.instance.id.
	Region, Instance string
	// LogOutput takes the JSON lines. Default: standard error.
	LogOutput io.Writer
	// LogLevel is the least level logged; a *slog.LevelVar can be changed while running. Default: info.
	LogLevel slog.Leveler
}

// Telemetry is what a service writes to. All fields are safe for concurrent use.
type Telemetry struct {
	Logger         *slog.Logger
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Registry holds what MetricsHandler serves.
	Registry *prometheus.Registry

	shutdown []func(context.Context) error
	export   export
}

// Start reads the OTEL_* variables. It contacts nobody: a collector that is away costs lost spans, not a failed start.
// An error means that a variable asks for something that does not exist.
func Start(ctx context.Context, o Options) (*Telemetry, error) {
	res, err := newResource(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t := &Telemetry{Registry: prometheus.NewRegistry()}
	if err := t.start(ctx, o, res); err != nil {
		return nil, fmt.Errorf("telemetry: %w", errors.Join(err, t.Shutdown(ctx)))
	}
	otel.SetErrorHandler(&complaints{logger: t.Logger})
	return t, nil
}

// MetricsHandler serves the metrics in Prometheus' format, or in OpenMetrics, which alone has exemplars, to whoever accepts it.
func (t *Telemetry) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(t.Registry, promhttp.HandlerOpts{Registry: t.Registry, EnableOpenMetrics: true})
}

// Shutdown exports what is left and stops, within a few seconds even if nobody takes it.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	errs := make([]error, len(t.shutdown))
	var all sync.WaitGroup // at once: a collector that is away must not use up the time of one that is there
	for i, stop := range t.shutdown {
		all.Go(func() { errs[i] = stop(ctx) })
	}
	all.Wait()
	t.shutdown = nil
	return errors.Join(errs...)
}

// Discard is telemetry that goes nowhere, for tests and for callers that want none.
func Discard() *Telemetry {
	return &Telemetry{
		Logger:         slog.New(slog.DiscardHandler),
		TracerProvider: tracenoop.NewTracerProvider(),
		MeterProvider:  metricnoop.NewMeterProvider(),
		Registry:       prometheus.NewRegistry(),
	}
}

func (t *Telemetry) start(ctx context.Context, o Options, res *sdkResource) error {
	if o.LogOutput == nil {
		o.LogOutput = os.Stderr
	}
	logs, err := t.logExport(ctx, res)
	if err != nil {
		return err
	}
	t.Logger = newLogger(o, logs)

	if t.TracerProvider, err = t.traceExport(ctx, res); err != nil {
		return err
	}
	return t.startMetrics(ctx, res)
}

func (t *Telemetry) startMetrics(ctx context.Context, res *sdkResource) error {
	// The region is on every series, as a collector puts it there from the resource: questions about a region must not
	// depend on how its targets are found.
	scraped, err := otelprometheus.New(otelprometheus.WithRegisterer(t.Registry), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithResourceAsConstantLabels(attribute.NewAllowKeysFilter(AttributeRegion)))
	if err != nil {
		return err
	}
	opts := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(scraped)}
	sent, err := metricExport(ctx)
	if err != nil {
		return err
	}
	if sent != nil {
		opts = append(opts, sdkmetric.WithReader(sent))
	}
	provider := sdkmetric.NewMeterProvider(opts...)
	t.MeterProvider = provider
	t.shutdown = append(t.shutdown, provider.Shutdown)
	if err := t.Registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil {
		return err
	}
	if err := t.export.observe(provider.Meter(scope)); err != nil {
		return err
	}
	return runtime.Start(runtime.WithMeterProvider(provider))
}
