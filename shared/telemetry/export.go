package telemetry

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

type sdkResource = resource.Resource

func newResource(ctx context.Context, o Options) (*sdkResource, error) {
	known := []attribute.KeyValue{semconv.ServiceName(o.Service), semconv.ServiceNamespace("partidor")}
	for key, value := range map[attribute.Key]string{
		semconv.ServiceVersionKey:    o.Version,
		semconv.ServiceInstanceIDKey: o.Instance,
		AttributeRegion:              o.Region,
	} {
		if value != "" {
			known = append(known, key.String(value))
		}
	}
	return resource.New(ctx,
		resource.WithSchemaURL(semconv.SchemaURL),
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(known...),
		resource.WithFromEnv(), // last: the operator's word wins
	)
}

// wanted tells whether the environment asks for a signal (TRACES, METRICS, LOGS) to be sent. The SDK's own default, to
// send everything to localhost, would fill the logs of whoever has no collector.
func wanted(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	for _, name := range []string{
		"OTEL_" + signal + "_EXPORTER",
		"OTEL_EXPORTER_OTLP_ENDPOINT",
		"OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT",
	} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

func (t *Telemetry) traceExport(ctx context.Context, res *sdkResource) (trace.TracerProvider, error) {
	if !wanted("TRACES") {
		return tracenoop.NewTracerProvider(), nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, err
	}
	if autoexport.IsNoneSpanExporter(exporter) {
		return tracenoop.NewTracerProvider(), nil
	}
	q := t.export.queue("traces", "OTEL_BSP_MAX_QUEUE_SIZE", sdktrace.DefaultMaxQueueSize)
	batches := sdktrace.NewBatchSpanProcessor(countedSpans{exporter, q}, sdktrace.WithMaxQueueSize(q.most))
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(boundedSpans{batches, q}))
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return provider, nil
}

func metricExport(ctx context.Context) (sdkmetric.Reader, error) {
	if !wanted("METRICS") {
		return nil, nil
	}
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil || autoexport.IsNoneMetricReader(reader) {
		return nil, err
	}
	return reader, nil
}

func (t *Telemetry) logExport(ctx context.Context, res *sdkResource) (*sdklog.LoggerProvider, error) {
	if !wanted("LOGS") {
		return nil, nil
	}
	exporter, err := autoexport.NewLogExporter(ctx)
	if err != nil || autoexport.IsNoneLogExporter(exporter) {
		return nil, err
	}
	q := t.export.queue("logs", "OTEL_BLRP_MAX_QUEUE_SIZE", 2048)
	batches := sdklog.NewBatchProcessor(countedRecords{exporter, q}, sdklog.WithMaxQueueSize(q.most))
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(boundedRecords{batches, q}))
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return provider, nil
}
