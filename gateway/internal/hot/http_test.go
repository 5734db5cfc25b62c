package hot

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// A client that waits for leave to upload gets it from the upstream, through the gateway, and the answer after.
func TestExpectContinue(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(w, "got %d", len(b))
	}, nil)
	conn := f.dial(t)
	if _, err := io.WriteString(conn, "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 200 || bodyOf(t, resp) != "got 5" {
		t.Errorf("%v, %v", resp, err)
	}
}

// HEAD goes by the route of GET and keeps the length of the answer it has none of; early hints pass and leave our headers.
func TestHeadAndHints(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Set("Content-Length", "1000")
		if r.Method != "HEAD" {
			_, _ = w.Write(make([]byte, 1000))
		}
	}, nil)
	resp := f.do(t, "HEAD", "/v1/items", nil)
	if resp.StatusCode != 200 || resp.ContentLength != 1000 || bodyOf(t, resp) != "" || resp.Header.Get("X-RateLimit-Remaining") != "199" {
		t.Errorf("HEAD: %d %v", resp.StatusCode, resp.Header)
	}
	got := f.raw(t, "GET /v1/items HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\n\r\n")
	hints, answer, _ := strings.Cut(got, "\r\n\r\n")
	if !strings.HasPrefix(hints, "HTTP/1.1 103 ") || !strings.HasPrefix(answer, "HTTP/1.1 200 ") || !strings.Contains(answer, "X-Ratelimit-Remaining: 198\r\n") {
		t.Errorf("hints: %.300q", got)
	}
}

// A client that does not finish its head is cut off; one request's worth of silence does not hold a connection for ever.
func TestSlowClients(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		c.Server.ReadHeaderTimeout, c.Server.IdleTimeout = 30*time.Millisecond, 30*time.Millisecond
	})
	conn := f.dial(t)
	if _, err := io.WriteString(conn, "GET /v1/items HTTP/1.1\r\nHost: h\r\nX-"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); err != nil || strings.Contains(string(b), " 200 ") {
		t.Errorf("an unfinished head: %q, %v", b, err)
	}
	idle := f.dial(t)
	if _, err := io.WriteString(idle, "GET /v1/items HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(idle); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 200 ") {
		t.Errorf("an idle connection: %.40q, %v", b, err)
	}
}

// HTTP/2 without TLS is spoken only where it is switched on.
func TestCleartextHTTP2IsOptIn(t *testing.T) {
	for _, on := range []bool{false, true} {
		f := newFixture(t, nil, func(c *config.Config) { c.Server.H2C = on })
		client := &http.Transport{Protocols: new(http.Protocols)}
		client.Protocols.SetUnencryptedHTTP2(true)
		req, err := http.NewRequest("GET", f.server.URL+"/v1/items", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "k-t1")
		resp, err := client.RoundTrip(req)
		if served := err == nil && resp.StatusCode == 200 && resp.ProtoMajor == 2; served != on {
			t.Errorf("h2c %v: %v, %v", on, resp, err)
		}
		client.CloseIdleConnections()
	}
}

// A connection answers many requests, pipelined ones too, each with its own numbers.
func TestKeepAlive(t *testing.T) {
	f := newFixture(t, nil, nil)
	conn := f.dial(t)
	if _, err := io.WriteString(conn, strings.Repeat("GET /v1/items HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\n\r\n", 5)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for i := range 5 {
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.Header.Get("X-RateLimit-Remaining") != fmt.Sprint(199-i) {
			t.Fatalf("answer %d: %v, %v", i, resp, err)
		}
		bodyOf(t, resp)
	}
}

// The answer's headers are the upstream's: none is made up, and repeated ones stay apart.
func TestAnswerPassesAsItIs(t *testing.T) {
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "<html>not gzip at all")
	}, nil)
	resp := f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {"k-t1"}, "Accept-Encoding": {"br"}})
	if _, told := resp.Header["Content-Type"]; told || len(resp.Header["Set-Cookie"]) != 2 || resp.StatusCode != 418 || bodyOf(t, resp) != "<html>not gzip at all" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}
