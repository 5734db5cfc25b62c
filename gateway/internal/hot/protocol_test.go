package hot

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"partidor.dev/partidor/gateway/internal/certs"
	"partidor.dev/partidor/gateway/internal/certs/certstest"
	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/limit"
)

// gRPC passes in both directions with its trailers, and the gateway's own answers are gRPC's.
func TestGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, states := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, states)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	f := newFixture(t, nil, func(c *config.Config) {
		c.Server.H2C = true
		c.Upstreams["grpc"] = config.Upstream{Protocol: config.ProtocolH2C, Targets: []config.Target{{URL: "http://" + l.Addr().String()}}}
		c.Routes = append(c.Routes, config.Route{ID: "rpc", Path: "/grpc.health.v1.Health/", Upstream: "grpc"})
	})
	conn, err := grpc.NewClient(f.server.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-api-key", "k-t1"), 10*time.Second)
	defer cancel()

	var header metadata.MD
	resp, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
	if err != nil || resp.Status != grpc_health_v1.HealthCheckResponse_SERVING || len(header["ratelimit"]) != 1 {
		t.Errorf("unary: %v, %v, %v", resp, err, header)
	}
	if _, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
		t.Errorf("the upstream's own status: %v", err)
	}
	stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{1, 2} {
		m, err := stream.Recv()
		if err != nil || m.Status != want {
			t.Fatalf("stream: %v, %v; want %v", m, err, want)
		}
		states.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	}
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a key: %v", err)
	}
	f.drain(limit.Key{Tenant: "t1", Route: "rpc"})
	if _, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("drained: %v", err)
	}
	if f.admitter.calls.Load() != 4 {
		t.Errorf("%d decisions, want one per call with a key", f.admitter.calls.Load())
	}
}

// TLS with client certificates on both sides, HTTP/2 on both sides.
func TestMutualTLS(t *testing.T) {
	ca := certstest.New(t)
	_, err := certs.Server(config.TLS{
		CertFile: ca.Issue(t, "upstream.test").Cert, KeyFile: ca.Issue(t, "upstream.test").Key,
	}, discard())
	if err == nil {
		t.Fatal("a key that is not the certificate's was accepted")
	}
	pair := ca.Issue(t, "upstream.test")
	upstreamTLS, err := certs.Server(config.TLS{CertFile: pair.Cert, KeyFile: pair.Key, ClientCAFile: ca.File}, discard())
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.TLS.PeerCertificates[0].Subject.CommonName+" "+r.Header.Get("X-Forwarded-Proto"))
	}))
	upstream.EnableHTTP2, upstream.TLS = true, upstreamTLS
	upstream.StartTLS()
	t.Cleanup(upstream.Close)

	own := ca.Issue(t, "gateway.test")
	f := newFixture(t, nil, func(c *config.Config) {
		c.Upstreams["echo"] = config.Upstream{
			Protocol: config.ProtocolH2,
			Targets:  []config.Target{{URL: upstream.URL}},
			TLS:      config.ClientTLS{CAFile: ca.File, CertFile: own.Cert, KeyFile: own.Key, ServerName: "upstream.test"},
		}
		c.TLS = config.TLS{CertFile: own.Cert, KeyFile: own.Key, ClientCAFile: ca.File}
	})
	c := f.Handler.current.Load().config
	serverTLS, err := certs.Server(c.TLS, discard())
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", serverTLS)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(c, f.Handler, serverTLS, discard())
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })

	ask := func(clientTLS config.ClientTLS) (*http.Response, error) {
		tlsConfig, err := certs.Client(clientTLS, discard())
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Transport{TLSClientConfig: tlsConfig(), ForceAttemptHTTP2: true}
		t.Cleanup(client.CloseIdleConnections)
		req, err := http.NewRequest("GET", "https://"+l.Addr().String()+"/v1/items", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "k-t1")
		return client.RoundTrip(req)
	}
	user := ca.Issue(t, "client.test")
	resp, err := ask(config.ClientTLS{CAFile: ca.File, ServerName: "gateway.test", CertFile: user.Cert, KeyFile: user.Key})
	if err != nil {
		t.Fatal(err)
	}
	if got := bodyOf(t, resp); got != "HTTP/2.0 gateway.test https" || resp.ProtoMajor != 2 {
		t.Errorf("%s, upstream saw %q", resp.Proto, got)
	}
	if _, err := ask(config.ClientTLS{CAFile: ca.File, ServerName: "gateway.test"}); err == nil {
		t.Error("a client without certificate was served")
	}
}
