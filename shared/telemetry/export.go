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

// AttributeRegion is the resource attribute that tells where a process runs.
const AttributeRegion = attribute.Key("partidor.region")

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
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter))
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
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return provider, nil
}
