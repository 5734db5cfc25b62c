package check

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"google.golang.org/grpc"
)

// collector is the shipped configuration in a collector of its components.
func collector(t *testing.T) *otelcol.Collector {
	t.Helper()
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: func() (f otelcol.Factories, err error) {
			f.Telemetry = otelconftelemetry.NewFactory()
			if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
				return f, err
			}
			if f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](memorylimiterprocessor.NewFactory(),
				tailsamplingprocessor.NewFactory(), batchprocessor.NewFactory()); err != nil {
				return f, err
			}
			if f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlpexporter.NewFactory(), prometheusexporter.NewFactory()); err != nil {
				return f, err
			}
			f.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](healthcheckextension.NewFactory())
			return f, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{"file:../collector.yaml"},
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
		}},
		DisableGracefulShutdown: true, // signals are the test's
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run the collector until the test ends, and wait until it takes what it is sent.
func run(t *testing.T) {
	t.Helper()
	c := collector(t)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	await(t, "the collector to run", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the collector has ended: %v", err)
		default:
		}
		return c.GetState() == otelcol.StateRunning
	})
	t.Cleanup(func() {
		c.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// free is an address on loopback that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// backend is where kept traces go.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer
	mu   sync.Mutex
	seen map[string]int // spans by the trace's name
}

func startBackend(t *testing.T) (*backend, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{seen: map[string]int{}}
	s := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(s, b)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-ended })
	return b, l.Addr().String()
}

func (b *backend) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rs := range r.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				name, _ := span.Attributes().Get("test.trace")
				b.seen[name.Str()]++
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

func (b *backend) spans(trace string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[trace]
}
