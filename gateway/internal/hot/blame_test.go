package hot

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// What a client sends must not look like an upstream that fails: else one client could open the breaker for all.
func TestClientsCannotOpenTheBreaker(t *testing.T) {
	const head = "Host: a\r\nX-Api-Key: k-t1\r\nConnection: close\r\n"
	for name, tt := range map[string]struct{ request, want string }{
		"a trailer with no name": {"POST /v1/upload HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nTrailer: a b\r\n\r\n0\r\n\r\n", "200"},
		"a switch over HTTP/2": {"GET /v1/h2 HTTP/1.1\r\nHost: a\r\nX-Api-Key: k-t1\r\n" +
			"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n", "200"},
		"no host": {"GET http://a\"b/v1/h2 HTTP/1.1\r\n" + head + "\r\n", "400"},
		"an upload that stalls until the exchange's end": {"POST /v1/brief HTTP/1.1\r\n" + head + "Content-Length: 10\r\n\r\nabc", "408"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(c *config.Config) {
				echo := c.Upstreams["echo"]
				echo.Breaker = config.Breaker{Failures: 2, Window: 2}
				c.Upstreams["echo"] = echo
				echo.Protocol = config.ProtocolH2C
				c.Upstreams["h2"] = echo
				c.Routes = append(c.Routes,
					config.Route{ID: "h2", Path: "/v1/h2", Upstream: "h2"},
					config.Route{ID: "brief", Path: "/v1/brief", Upstream: "echo", Timeouts: config.Timeouts{Total: 500 * time.Millisecond}})
			})
			for range 4 {
				if answer := f.raw(t, tt.request); !strings.HasPrefix(answer, "HTTP/1.1 "+tt.want) {
					t.Fatalf("%.200q, want %s", answer, tt.want)
				}
			}
			for _, path := range []string{"/v1/items", "/v1/h2"} {
				if resp := f.do(t, "GET", path, nil); resp.StatusCode != http.StatusOK {
					t.Errorf("%s afterwards: %d", path, resp.StatusCode)
				}
			}
		})
	}
}

// An upstream's status that net/http cannot send is the upstream's failure, not the gateway's.
func TestStatusBelow100(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n")
		conn.Close()
	}, nil)
	if resp := f.do(t, "GET", "/v1/items", nil); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("%d, want 502", resp.StatusCode)
	}
}

// Trailers of a request reach the upstream with their values, but for those that would speak in the gateway's name.
func TestRequestTrailers(t *testing.T) {
	got := make(chan http.Header, 1)
	f := newFixture(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer
	}, nil)
	f.raw(t, "POST /v1/upload HTTP/1.1\r\nHost: a\r\nX-Api-Key: k-t1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"+
		"Trailer: X-Sum, X-Tenant-Id, X_Tenant_Id, X-Forwarded-For\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\nX-Tenant-Id: t2\r\nX_Tenant_Id: t2\r\nX-Forwarded-For: 1.1.1.1\r\nX-Late: 1\r\n\r\n")
	if trailer := <-got; len(trailer) != 1 || trailer.Get("X-Sum") != "7" {
		t.Errorf("upstream got %v, want only X-Sum: 7", trailer)
	}
}
