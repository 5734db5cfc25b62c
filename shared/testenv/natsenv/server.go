// Package natsenv starts real NATS servers for tests. It stands apart from package testenv, since a server is much to compile: tests
// that need none, and fuzzing above all, do without.
package natsenv

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startTimeout bounds how long a server may take until it answers.
const startTimeout = 30 * time.Second

// Server is a nats-server inside the test binary that also listens on the loopback interface.
type Server struct {
	// URL stays the same over Restart.
	URL string

	tb      testing.TB
	options server.Options
	server  *server.Server
}

// Option changes the options of a server before it starts.
type Option func(*server.Options)

// Start starts a server and waits until it accepts connections.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	n := &Server{tb: tb, options: server.Options{
		Host:   "127.0.0.1",
		Port:   server.RANDOM_PORT,
		NoLog:  true,
		NoSigs: true,
	}}
	for _, opt := range opts {
		opt(&n.options)
	}
	n.start()
	n.URL = n.server.ClientURL()
	tb.Cleanup(func() {
		if n.server != nil {
			n.Stop()
		}
	})
	return n
}

func (n *Server) start() {
	n.tb.Helper()
	options := n.options // the server keeps and changes what it is given
	s, err := server.NewServer(&options)
	if err != nil {
		n.tb.Fatalf("start nats: %v", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		n.tb.Fatalf("nats does not accept connections after %s", startTimeout)
	}
	n.server = s
	n.options.Port = options.Port
}

// Conn is a new connection over TCP that reconnects quickly and for ever. It is closed when the test ends.
func (n *Server) Conn(tb testing.TB, opts ...nats.Option) *nats.Conn {
	tb.Helper()
	opts = append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond)}, opts...)
	c, err := nats.Connect(n.URL, opts...)
	if err != nil {
		tb.Fatalf("connect to nats: %v", err)
	}
	tb.Cleanup(c.Close)
	return c
}

// Stop ends the server and cuts every connection.
func (n *Server) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
	n.server = nil
}

// Restart starts the server again on the same port, stopping it first if it still runs.
func (n *Server) Restart() {
	n.tb.Helper()
	if n.server != nil {
		n.Stop()
	}
	n.start()
}
