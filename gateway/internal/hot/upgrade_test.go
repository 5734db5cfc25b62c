package hot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/limit"
)

// upgradeEcho is a WebSocket-like upstream: it switches protocols and sends back what it gets. What ?half= says, it does.
func upgradeEcho(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		_, _ = io.WriteString(w, "no upgrade")
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	protocol := r.Header.Get("Upgrade")
	if r.URL.Query().Has("wrong") {
		protocol = "something-else"
	}
	_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-RateLimit-Remaining: 3\r\n\r\n", protocol)
	if rw.Flush() != nil {
		return
	}
	if r.URL.Query().Has("die") {
		return
	}
	line, err := rw.ReadString('\n')
	for ; err == nil; line, err = rw.ReadString('\n') {
		if _, err := rw.WriteString(line); err != nil || rw.Flush() != nil {
			return
		}
	}
}

func handshake(path, key string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: h\r\nX-Api-Key: " + key + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
}

// request-path 100: sockets cost one token each, lose no byte of what was sent with the handshake, and are gone when either
// side is.
func TestUpgrade(t *testing.T) {
	f := newFixture(t, upgradeEcho, nil)
	before := runtime.NumGoroutine()
	var open []net.Conn
	for i := range 50 {
		conn := f.dial(t)
		path := "/v1/ws"
		if i%2 == 1 {
			path += "?die"
		}
		// The first line travels in the same packet as the handshake.
		if _, err := io.WriteString(conn, handshake(path, "k-t1")+"early\n"); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 101 {
			t.Fatalf("socket %d: %v, %v", i, resp, err)
		}
		if want := fmt.Sprint(199 - i); resp.Header.Get("X-RateLimit-Remaining") != want || len(resp.Header["X-Ratelimit-Remaining"]) != 1 {
			t.Errorf("socket %d: remaining %q, want %s", i, resp.Header["X-Ratelimit-Remaining"], want)
		}
		if i%2 == 1 {
			if _, err := io.ReadAll(r); err != nil {
				t.Errorf("socket %d, whose upstream died: %v", i, err)
			}
			conn.Close()
			continue
		}
		if _, err := io.WriteString(conn, "late\n"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"early\n", "late\n"} {
			if got, err := r.ReadString('\n'); err != nil || got != want {
				t.Fatalf("socket %d: %q, %v; want %q", i, got, err, want)
			}
		}
		open = append(open, conn)
	}
	if f.admitter.spentBy("t1", "ws") != 50 {
		t.Errorf("%d tokens for 50 handshakes", f.admitter.spentBy("t1", "ws"))
	}
	for _, conn := range open {
		conn.Close()
	}
	settle(t, before)
}

func TestUpgradeRefused(t *testing.T) {
	f := newFixture(t, upgradeEcho, nil)
	conn := f.dial(t)
	if _, err := io.WriteString(conn, handshake("/v1/ws?wrong", "k-t1")); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 502 || resp.Header.Get("X-RateLimit-Remaining") != "199" {
		t.Errorf("upstream switched to another protocol: %v, %v", resp, err)
	}
	f.drain(limit.Key{Tenant: "t1", Route: "ws"})
	got := f.raw(t, strings.Replace(handshake("/v1/ws", "k-t1"), "Connection: Upgrade", "Connection: Upgrade, close", 1))
	if !strings.HasPrefix(got, "HTTP/1.1 429 ") || !strings.Contains(got, "Retry-After: ") {
		t.Errorf("a drained caller's handshake: %.100q", got)
	}
}

// request-path 109: an upgrade on a route with repeats is sent once, and nothing breaks after the switch.
func TestUpgradeIsNotRepeated(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("busy") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		upgradeEcho(w, r)
	}, func(c *config.Config) { c.Routes[3].Retry.Attempts = 3 })
	conn := f.dial(t)
	if _, err := io.WriteString(conn, handshake("/v1/ws?busy", "k-t1")); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 503 || f.echo.hits.Load() != 1 {
		t.Errorf("%v, %v after %d attempts", resp, err, f.echo.hits.Load())
	}
	again := f.dial(t)
	if _, err := io.WriteString(again, handshake("/v1/ws?die", "k-t1")); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(again), nil); err != nil || resp.StatusCode != 101 {
		t.Errorf("%v, %v", resp, err)
	}
}

// Shutdown waits for upgraded connections too, as long as it is given.
func TestWaitForUpgrades(t *testing.T) {
	f := newFixture(t, upgradeEcho, nil)
	conn := f.dial(t)
	if _, err := io.WriteString(conn, handshake("/v1/ws", "k-t1")); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v, %v", resp, err)
	}
	if err := f.server.Config.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := f.Handler.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with an open socket: %v", err)
	}
	conn.Close()
	if err := f.Handler.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A switch that the route does not allow, such as to HTTP/2, does not happen: the request goes on as an ordinary one.
func TestOnlyAllowedUpgrades(t *testing.T) {
	for _, upgrade := range []string{"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__", "Upgrade: websocket, h2c", "Upgrade: websocket\r\nUpgrade: h2c", "Upgrade: tls/1.2"} {
		f := newFixture(t, upgradeEcho, nil)
		got := f.raw(t, "GET /v1/ws HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: Upgrade, HTTP2-Settings, close\r\n"+upgrade+"\r\n\r\n")
		h := f.echo.last.Load().Header
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.HasSuffix(got, "no upgrade") || h["Upgrade"] != nil || h["Http2-Settings"] != nil {
			t.Errorf("%q: %.60q, upstream got %v", upgrade, got, h)
		}
	}
}
