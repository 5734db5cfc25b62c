// Package otlpenv receives traces over OTLP in tests. It stands apart from package testenv as gRPC is much to compile.
package otlpenv

import (
	"context"
	"net"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector is a collector that keeps the spans it is sent.
type Collector struct {
	collector.UnimplementedTraceServiceServer

	// Endpoint is the value for OTEL_EXPORTER_OTLP_TRACES_ENDPOINT with OTEL_EXPORTER_OTLP_PROTOCOL=grpc.
	Endpoint string

	mu      sync.Mutex
	spans   []Span
	arrived chan struct{} // closed and replaced whenever spans arrive
}

// Span is one received span with the resource that sent it.
type Span struct {
	*tracepb.Span
	Resource map[string]string
}

// Start starts the collector on the loopback interface, without TLS, until the test ends.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("start otlp collector: %v", err)
	}
	o := &Collector{Endpoint: "http://" + l.Addr().String(), arrived: make(chan struct{})}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, o)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	tb.Cleanup(func() {
		s.Stop()
		served.Wait()
	})
	return o
}

// Export implements the OTLP trace service.
func (o *Collector) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		resource := map[string]string{}
		for _, a := range rs.GetResource().GetAttributes() {
			resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				o.spans = append(o.spans, Span{s, resource})
			}
		}
	}
	close(o.arrived)
	o.arrived = make(chan struct{})
	return &collector.ExportTraceServiceResponse{}, nil
}

// Await blocks until found returns true for the spans received so far, or ctx ends; it returns found's last answer.
func (o *Collector) Await(ctx context.Context, found func([]Span) bool) bool {
	for {
		o.mu.Lock()
		spans, arrived := o.spans[:len(o.spans):len(o.spans)], o.arrived
		o.mu.Unlock()
		if found(spans) {
			return true
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return false
		}
	}
}
