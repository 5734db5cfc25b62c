package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/certs/certstest"
	"partidor.dev/partidor/gateway/internal/config"
)

// serveTLS is an upstream whose certificate is of ca, for 127.0.0.1 and up.test. It answers with its protocol.
func serveTLS(t *testing.T, ca *certstest.Authority) *httptest.Server {
	t.Helper()
	pair := ca.Issue(t, "up.test")
	cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// Over TLS, too, each protocol is spoken as configured, the certificate is verified for the name or the address of the target,
// and a target whose handshake fails is passed over for another, as no byte of the request was sent.
func TestTLSUpstream(t *testing.T) {
	ca, other := certstest.New(t), certstest.New(t)
	good, bad := serveTLS(t, ca), serveTLS(t, other)
	for _, tt := range []struct {
		name, protocol, server string
		urls                   []string
		code                   int
		answer                 string
	}{
		{"HTTP/1.1", config.ProtocolHTTP1, "", []string{good.URL}, 200, "HTTP/1.1"},
		{"HTTP/2", config.ProtocolH2, "", []string{good.URL}, 200, "HTTP/2.0"},
		{"by name", config.ProtocolHTTP1, "up.test", []string{good.URL}, 200, "HTTP/1.1"},
		{"by another name", config.ProtocolHTTP1, "down.test", []string{good.URL}, 502, ""},
		{"an address the certificate is not for", config.ProtocolHTTP1, "", []string{strings.Replace(good.URL, "127.0.0.1", "127.0.0.2", 1)}, 502, ""},
		{"of another authority", config.ProtocolH2, "", []string{bad.URL}, 502, ""},
		{"one of two", config.ProtocolH2, "", []string{bad.URL, good.URL}, 200, "HTTP/2.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := upstream(t, func(c *config.Upstream) {
				c.Protocol, c.TLS = tt.protocol, config.ClientTLS{CAFile: ca.File, ServerName: tt.server}
				c.ConnectTimeout = 30 * time.Second
			}, tt.urls...)
			for range 2 { // Both begin with another target, where there are two.
				w, o := forward(t, u, httptest.NewRequest("POST", "/x", strings.NewReader("body")), repeats)
				if w.Code != tt.code || tt.code == 200 && w.Body.String() != tt.answer {
					t.Errorf("%d %q, %v", w.Code, w.Body, o.cause)
				}
			}
		})
	}
}

// An upstream's new authority holds for the next connection.
func TestUpstreamAuthoritiesAreFollowed(t *testing.T) {
	old, next := certstest.New(t), certstest.New(t)
	s := serveTLS(t, next)
	u := upstream(t, func(c *config.Upstream) {
		c.TLS, c.ConnectTimeout = config.ClientTLS{CAFile: old.File}, 30*time.Second
		c.Breaker.Disabled = true
	}, s.URL)
	if w, _ := forward(t, u, httptest.NewRequest("GET", "/x", nil), nil); w.Code != 502 {
		t.Fatalf("before: %d", w.Code)
	}
	pem, err := os.ReadFile(next.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old.File, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(old.File, later, later); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		w, o := forward(t, u, httptest.NewRequest("GET", "/x", nil), nil)
		if w.Code == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s: %d, %v", w.Code, o.cause)
		}
	}
}

// A connection that nobody uses is closed before the target would close it.
func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	s.Start()
	u := upstream(t, func(c *config.Upstream) { c.IdleTimeout = 10 * time.Millisecond }, s.URL)
	if w, _ := forward(t, u, httptest.NewRequest("GET", "/x", nil), nil); w.Code != 200 {
		t.Fatalf("status %d", w.Code)
	}
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Error("still open after 30 s")
	}
	s.Close()
}
