package hot

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// raw sends bytes as they are and returns the answers. It is used with requests after which the gateway closes the
// connection: those that ask for it, and those it refuses to read on from. Closing our side early would be leaving.
func (f *fixture) raw(t *testing.T, request string) string {
	t.Helper()
	conn := f.dial(t)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		t.Fatal(err)
	}
	return string(answer)
}

func (f *fixture) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// request-path 14: every spelling of a path is the route with its one bucket, or is refused. None reaches the upstream
// unlimited, and what reaches it is the normal form.
func TestSpellingsOfOnePath(t *testing.T) {
	f := newFixture(t, nil, nil)
	tests := []struct {
		target string
		status int
	}{
		{"/v1/items", 200}, {"/v1//items", 200}, {"/v1/./items", 200}, {"/v1/x/../items", 200}, {"/v1/%69tems", 200},
		{"/v1/items?", 200}, {"/../v1/items", 200}, {"//v1/items", 200}, {"http://other/v1/items", 200},
		{"/v1/items/", 404}, {"/V1/Items", 404}, {"/v1/items#x", 404},
		{"/v1/items;a=1", 400}, {"/v1/items%3ba=1", 400}, {"/v1%2fitems", 400}, {"/v1/%2e%2e/v1/items", 400}, {"/v1/items%00", 400},
		{"/v1\\items", 400}, {"/v1/items%5c", 400}, {"/v1/items%zz", 400}, {"*", 400}, {"v1/items", 400},
	}
	want := int64(0)
	for _, tt := range tests {
		before := f.echo.hits.Load()
		got := f.raw(t, "GET "+tt.target+" HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tt.status)) {
			t.Errorf("%s: %.60q, want %d", tt.target, got, tt.status)
		}
		if tt.status != 200 {
			if f.echo.hits.Load() != before {
				t.Errorf("%s reached the upstream", tt.target)
			}
			continue
		}
		want++
		if path := f.echo.last.Load().URL.EscapedPath(); path != "/v1/items" {
			t.Errorf("%s reached the upstream as %s", tt.target, path)
		}
	}
	if f.admitter.spentBy("t1", "items") != want || f.admitter.buckets() != 1 || f.echo.hits.Load() != want {
		t.Errorf("buckets %v, %d hits, want %d", f.admitter.spent, f.echo.hits.Load(), want)
	}
}

// request-path 17: ten thousand ids are one bucket.
func TestOneBucketPerTemplate(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.admitter.rule.Capacity = 1 << 40
	conn := f.dial(t)
	go func() {
		w := bufio.NewWriter(conn)
		for i := range 10_000 {
			fmt.Fprintf(w, "GET /v1/items/id-%d HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\n\r\n", i)
		}
		_ = w.Flush() // A failure shows as missing answers.
	}()
	r := bufio.NewReader(conn)
	for i := range 10_000 {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("answer %d: %d, %v", i, resp.StatusCode, err)
		}
	}
	if f.admitter.spentBy("t1", "item") != 10_000 || f.admitter.buckets() != 1 {
		t.Errorf("%d buckets, %d spent", f.admitter.buckets(), f.admitter.spentBy("t1", "item"))
	}
}

// request-path 19: spellings of a host are one route with one bucket.
func TestSpellingsOfOneHost(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Routes[0].Hosts = []string{"api.example.com"} })
	for _, host := range []string{"api.example.com", "api.example.com:443", "API.example.com", "api.example.com."} {
		got := f.raw(t, "GET /v1/items HTTP/1.1\r\nHost: "+host+"\r\nX-Api-Key: k-t1\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%s: %.60q", host, got)
		}
	}
	if f.admitter.spentBy("t1", "items") != 4 || f.admitter.buckets() != 1 {
		t.Errorf("buckets %v", f.admitter.spent)
	}
}

// Requests that two servers on the way might cut apart in different places are refused, or reach the upstream in one
// reading only; nothing behind them is taken for a second request.
func TestSmuggling(t *testing.T) {
	const head = "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nConnection: close\r\n"
	const hidden = "GET /v1/items HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t2\r\n\r\n"
	tests := []struct {
		name, request string
		refused       bool
	}{
		{"two lengths", head + "Content-Length: 4\r\nContent-Length: 40\r\n\r\nabcd" + hidden, true},
		{"a list of lengths", head + "Content-Length: 4, 40\r\n\r\nabcd" + hidden, true},
		{"a signed length", head + "Content-Length: +4\r\n\r\nabcd", true},
		{"a negative length", head + "Content-Length: -1\r\n\r\nabcd", true},
		{"a length in hex", head + "Content-Length: 0x4\r\n\r\nabcd", true},
		{"length and chunks", head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		{"an unknown coding", head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", true},
		{"two codings", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", true},
		{"coding twice", head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
		{"a space before the colon", head + "Content-Length : 4\r\n\r\nabcd", true},
		{"a folded header", head + "X-A: b\r\n Content-Length: 4\r\n\r\n", false},
		{"a bare CR in a value", head + "X-A: b\rContent-Length: 4\r\n\r\nabcd", true},
		{"a bad chunk size", head + "Transfer-Encoding: chunked\r\n\r\n4x\r\nabcd\r\n0\r\n\r\n", true},
		{"a bare LF behind a chunk size", head + "Transfer-Encoding: chunked\r\n\r\n4;a\nabcd\r\n0\r\n\r\n", true},
		{"two hosts", "POST /v1/upload HTTP/1.1\r\nHost: h\r\nHost: i\r\nX-Api-Key: k-t1\r\nContent-Length: 0\r\n\r\n", true},
		{"no host", "POST /v1/upload HTTP/1.1\r\nX-Api-Key: k-t1\r\nContent-Length: 0\r\n\r\n", true},
		{"an oversized head", head + "X-A: " + strings.Repeat("a", 90<<10) + "\r\n\r\n", true},
		{"an underscore twin of the length", head + "Content_Length: 40\r\nContent-Length: 4\r\n\r\nabcd", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, nil)
			got := f.raw(t, tt.request)
			answers := strings.Count(got, "HTTP/1.1 ")
			refused := strings.HasPrefix(got, "HTTP/1.1 4") || strings.HasPrefix(got, "HTTP/1.1 5")
			if answers != 1 || refused != tt.refused {
				t.Errorf("%d answers, %.80q", answers, got)
			}
			if f.admitter.spentBy("t2", "items") != 0 {
				t.Error("a hidden request was served")
			}
			if tt.refused && f.echo.hits.Load() > 0 && f.echo.last.Load().ContentLength >= 0 {
				t.Error("a refused request reached the upstream whole")
			}
			if last := f.echo.last.Load(); last != nil && (len(last.TransferEncoding) > 0 && last.Header.Get("Content-Length") != "" || last.Header["Content_length"] != nil) {
				t.Errorf("upstream got %v", last.Header)
			}
		})
	}
}

// Behind a request that another server on the way may have cut apart elsewhere the connection ends.
func TestDoubtfulFramingEndsTheConnection(t *testing.T) {
	const head = "Host: h\r\nX-Api-Key: k-t1\r\n"
	const hidden = "GET /v1/items HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t2\r\nConnection: close\r\n\r\n"
	trusted := func(c *config.Config) { c.Addresses.TrustedProxies = []string{"127.0.0.0/8"} }
	for _, tt := range []struct {
		name, request string
		edit          func(*config.Config)
		hidden        int64 // requests that are served behind it
	}{
		{"chunks in HTTP/1.0", "POST /v1/upload HTTP/1.0\r\n" + head + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", nil, 0},
		{"chunks and a length in HTTP/1.0", "POST /v1/upload HTTP/1.0\r\n" + head + "Connection: keep-alive\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", nil, 0},
		{"the same with an upgrade", "POST /v1/ws HTTP/1.0\r\n" + head + "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n", nil, 0},
		{"chunks beside a length through a proxy", "POST /v1/upload HTTP/1.1\r\n" + head + "Content-Length: 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", trusted, 0},
		{"the same with an upgrade", "POST /v1/ws HTTP/1.1\r\n" + head + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", trusted, 0},
		{"the same, refused", "POST /nowhere HTTP/1.1\r\n" + head + "Content-Length: 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", trusted, 0},
		{"chunks of a client's own", "POST /v1/upload HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", nil, 1},
		{"a length through a proxy", "POST /v1/upload HTTP/1.1\r\n" + head + "Content-Length: 3\r\n\r\nabc", trusted, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, tt.edit)
			got := f.raw(t, tt.request+hidden)
			if n := f.admitter.spentBy("t2", "items"); n != tt.hidden || !strings.HasPrefix(got, "HTTP/1.") {
				t.Errorf("%d requests behind it were served, want %d; %.60q", n, tt.hidden, got)
			}
		})
	}
}
