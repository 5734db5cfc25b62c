package hot

import (
	"net"
	"net/http"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// A client that asks for a large answer and reads none of it is given up, instead of holding the upstream's connection and a
// place in the route's bound for ever.
func TestClientThatDoesNotRead(t *testing.T) {
	c := &config.Config{Server: config.Server{BodyTimeout: 50 * time.Millisecond}}
	ended := make(chan error, 1)
	s := NewServer(c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for piece := make([]byte, 1<<20); ; {
			if _, err := w.Write(piece); err != nil {
				ended <- err
				return
			}
		}
	}), nil, discard())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(Listen(c, l, nil)) }()
	t.Cleanup(func() { s.Close() })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("still writing")
	}
}
