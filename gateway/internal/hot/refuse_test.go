package hot

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/limit"
)

const post = "POST /v1/upload HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t1\r\nContent-Length: 60\r\n\r\n"

// hidden is a body that would be a request, if anybody took it for one.
const hidden = "GET /v1/items HTTP/1.1\r\nHost: h\r\nX-Api-Key: k-t2\r\n\r\n........"

// A refused request whose short body has come keeps its connection.
func TestRefusedPostKeepsConnection(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.drain(limit.Key{Tenant: "t1", Route: "up"})
	conn := f.dial(t)
	r := bufio.NewReader(conn)
	for i := range 3 {
		if _, err := io.WriteString(conn, post+strings.Repeat("x", 60)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 429 || resp.Close {
			t.Fatalf("answer %d: %v, %v", i, resp, err)
		}
		bodyOf(t, resp)
	}
}

// A refused request whose body is late is answered all the same, and what comes late is never taken for a request.
func TestRefusedPostWithLateBody(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.drain(limit.Key{Tenant: "t1", Route: "up"})
	conn := f.dial(t)
	if _, err := io.WriteString(conn, post); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 429 || !resp.Close {
		t.Fatalf("%v, %v", resp, err)
	}
	bodyOf(t, resp)
	_, _ = io.WriteString(conn, hidden) // The connection may be closed already.
	_, _ = io.Copy(io.Discard, r)
	if f.admitter.spentBy("t2", "items") != 0 {
		t.Error("a late body was taken for a request")
	}
}

// The same where the upstream has answered before the body came, and where it has failed.
func TestAnsweredPostWithLateBody(t *testing.T) {
	for name, upstream := range map[string]http.HandlerFunc{
		"answered": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "early")
		},
		"failed": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				upstream(w, r)
			}, func(c *config.Config) { c.Server.BodyTimeout = 30 * time.Millisecond })
			conn := f.dial(t)
			if _, err := io.WriteString(conn, post); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			bodyOf(t, resp)
			_, _ = io.WriteString(conn, hidden)
			_, _ = io.WriteString(conn, "GET /v1/open HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			_, _ = io.Copy(io.Discard, r)
			if f.admitter.spentBy("t2", "items") != 0 {
				t.Error("a late body was taken for a request")
			}
		})
	}
}
