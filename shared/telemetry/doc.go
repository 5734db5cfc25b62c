// Package telemetry gives a service its logger, tracer and meter.
//
// Logs are JSON lines that carry the trace and span they belong to. Metrics can always be scraped in Prometheus' format.
// Traces, metrics and logs are sent elsewhere by the standard OTEL_* variables (OTEL_EXPORTER_OTLP_ENDPOINT,
// OTEL_TRACES_EXPORTER, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, …), and only if one of them
// asks for it: a service without a collector has nothing that waits or complains.
//
// Nothing here is global, so that several services can live in one process; the one exception is where OpenTelemetry's
// own complaints go.
package telemetry
