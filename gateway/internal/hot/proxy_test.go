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
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// request-path 101: events of a stream arrive as they are sent, trailers arrive, each through every wrapper.
func TestStreaming(t *testing.T) {
	next := make(chan struct{})
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Trailer", "X-Sum")
		for i := range 3 {
			<-next
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
		}
		w.Header().Set("X-Sum", "3")
		w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
	}, nil)
	req, err := http.NewRequest("GET", f.server.URL+"/v1/items", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k-t1")
	// The upstream sends its head with the first event, so the first next comes before the answer.
	go func() { next <- struct{}{} }()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for i := range 3 {
		// Were an event held back, the next would never be asked for and the test would hang.
		if line, err := r.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			next <- struct{}{}
		}
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Fatalf("after the last event: %v", err)
	}
	if resp.Trailer.Get("X-Sum") != "3" || resp.Trailer.Get("X-Late") != "yes" {
		t.Errorf("trailers %v", resp.Trailer)
	}
}

// request-path 103: a large body passes whole, both ways at once, in flat memory.
func TestLargeBodies(t *testing.T) {
	const size = 200 << 20
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		n, err := io.Copy(w, r.Body)
		if err != nil || n != size {
			t.Errorf("upstream got %d bytes, %v", n, err)
		}
	}, func(c *config.Config) { c.Routes[2].Retry.Attempts = 3 })
	req, err := http.NewRequest("POST", f.server.URL+"/v1/upload", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k-t1")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("client got %d bytes, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated on the way", grown)
	}
}

// request-path 106: when the upstream dies amid its answer, the client sees a broken transfer, and nothing stays behind.
func TestUpstreamDiesMidBody(t *testing.T) {
	for name, head := range map[string]string{
		"with a length": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
		"in chunks":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				defer conn.Close()
				_, _ = rw.WriteString(head)
				_ = rw.Flush()
			}, nil)
			before := runtime.NumGoroutine()
			for range 200 {
				req, err := http.NewRequest("GET", f.server.URL+"/v1/items", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Api-Key", "k-t1")
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					continue // Broken before the head was sent.
				}
				if b, err := io.ReadAll(resp.Body); err == nil || string(b) != "half" {
					t.Fatalf("client got %q and a clean end", b)
				}
				resp.Body.Close()
			}
			settle(t, before)
		})
	}
}

// request-path 107: clients that leave are 499, end the upstream's request and do not count against it.
func TestClientAborts(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}, nil)
	for range 100 {
		ctx, leave := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, "GET", f.server.URL+"/v1/items", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "k-t1")
		go func() { <-started; leave() }()
		if _, err := http.DefaultTransport.RoundTrip(req); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		<-ended
	}
	if log := f.log.String(); !strings.Contains(log, "status=499") || strings.Contains(log, "status=502") {
		t.Errorf("log: %s", log)
	}
	f.echo.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 200 {
		t.Errorf("after the aborts: %d", s)
	}
}

// An upstream that cannot be reached is 502, one that is too slow 504; both keep the limit's headers.
func TestUpstreamErrors(t *testing.T) {
	hold := make(chan struct{})
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { <-hold }, func(c *config.Config) {
		c.Routes[0].Timeouts.Response = 20 * time.Millisecond
		c.Routes[1].Timeouts.Total = 20 * time.Millisecond
		c.Upstreams["nobody"] = config.Upstream{Targets: []config.Target{{URL: "http://127.0.0.1:1"}}}
		c.Routes[4].Upstream = "nobody"
	})
	defer close(hold)
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/v1/items": {504, "#upstream-timeout"}, "/v1/items/7": {504, "#upstream-timeout"}, "/v1/open": {502, "#upstream-failed"},
	} {
		resp := f.do(t, "GET", path, nil)
		if resp.StatusCode != want.status || resp.Header.Get("X-RateLimit-Remaining") != "199" || resp.Header.Get("RateLimit") == "" ||
			!strings.Contains(bodyOf(t, resp), want.kind) {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
}

// settle waits until no more goroutines run than before, give or take the connections that are kept for later.
func settle(t *testing.T, before int) {
	t.Helper()
	var wg sync.WaitGroup
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+6 {
		if time.Now().After(deadline) {
			buf := make([]byte, 64<<10)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		wg.Go(runtime.Gosched)
		wg.Wait()
	}
}

// A client that breaks off in the middle of its body has left: 499, and no fault of the upstream's.
func TestUploadBreaksOff(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(c *config.Config) {
		u := c.Upstreams["echo"]
		u.Breaker = config.Breaker{Failures: 3, Window: 3, Delay: time.Hour}
		c.Upstreams["echo"] = u
	})
	for range 10 {
		conn := f.dial(t)
		if _, err := io.WriteString(conn, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nContent-Length: 100\r\n\r\nhalf"); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || len(answer) != 0 {
			t.Fatalf("%q, %v", answer, err)
		}
	}
	if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 200 {
		t.Errorf("afterwards: %d", s)
	}
	if log := f.log.String(); !strings.Contains(log, "status=499") || strings.Contains(log, "status=5") {
		t.Errorf("log: %s", log)
	}
}

// A client that falls silent in the middle of its body is told so, and no fault of the upstream's.
func TestSilentUpload(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(c *config.Config) {
		c.Server.BodyTimeout = 20 * time.Millisecond
	})
	conn := f.dial(t)
	if _, err := io.WriteString(conn, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nContent-Length: 100\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("%.80q, %v", answer, err)
	}
	// The bound is on silence, not on the request: afterwards the connection serves on for as long as it likes.
	again := f.dial(t)
	for range 2 {
		if _, err := io.WriteString(again, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nContent-Length: 4\r\n\r\nwhol"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(again), nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
}
