package testenv

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// NATS is a nats-server inside the test binary that also listens on the loopback interface.
type NATS struct {
	// URL stays the same over Restart.
	URL string

	tb      testing.TB
	options server.Options
	server  *server.Server
}

// NATSOption changes the options of a NATS server before it starts.
type NATSOption func(*server.Options)

// StartNATS starts a NATS server and waits until it accepts connections.
func StartNATS(tb testing.TB, opts ...NATSOption) *NATS {
	tb.Helper()
	n := &NATS{tb: tb, options: server.Options{
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

func (n *NATS) start() {
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
func (n *NATS) Conn(tb testing.TB, opts ...nats.Option) *nats.Conn {
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
func (n *NATS) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
	n.server = nil
}

// Restart starts the server again on the same port, stopping it first if it still runs.
func (n *NATS) Restart() {
	n.tb.Helper()
	if n.server != nil {
		n.Stop()
	}
	n.start()
}
