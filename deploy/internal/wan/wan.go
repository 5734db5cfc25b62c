// Package wan puts long links between processes of one machine: with delay, and with the faults of long links. It is
// toxiproxy, in process.
package wan

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Direction of what flows through a link, seen from the side that dials.
type Direction string

// The directions: away from the side that dials, and towards it.
const (
	Forth Direction = "upstream"
	Back  Direction = "downstream"
)

// forever is the delay of a stalled direction.
const forever = 24 * time.Hour

// Link is a way to one server. Methods are for one goroutine at a time.
type Link struct {
	proxy *toxiproxy.Proxy
}

// New opens a link to a server's address (host:port) that delays each direction by so much. Dial Addr instead of the server.
func New(server string, delay time.Duration) (*Link, error) {
	s := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{toxiproxy.NewProxy(s, server, "127.0.0.1:0", server)}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("link to %s: %w", server, err)
	}
	if delay <= 0 {
		return l, nil
	}
	for _, d := range []Direction{Forth, Back} {
		if err := l.slow(d, "length", delay); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *Link) slow(d Direction, name string, delay time.Duration) error {
	toxic := fmt.Sprintf(`{"name":"%s %s","type":"latency","stream":"%s","attributes":{"latency":%d}}`, name, d, d, delay.Milliseconds())
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		return fmt.Errorf("link to %s: %w", l.proxy.Upstream, err)
	}
	return nil
}

// Addr is where to dial. It stays the same.
func (l *Link) Addr() string { return l.proxy.Listen }

// Stall lets nothing pass in one direction, and nobody is told: connections stay open and new ones can be opened, as over a
// route that swallows packets. What is sent meanwhile arrives after Flow, if its connection still stands.
func (l *Link) Stall(d Direction) error { return l.slow(d, "stall", forever) }

// Flow ends Stall.
func (l *Link) Flow(d Direction) error {
	return l.proxy.Toxics.RemoveToxic(context.Background(), "stall "+string(d))
}

// Turn leads to another server from now on. Connections to the one before are cut.
func (l *Link) Turn(server string) error {
	l.proxy.Stop()
	l.proxy.Lock()
	l.proxy.Upstream = server
	l.proxy.Unlock()
	return l.proxy.Start()
}

// Close cuts everything.
func (l *Link) Close() { l.proxy.Stop() }
