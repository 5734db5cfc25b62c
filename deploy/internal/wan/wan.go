// Package wan puts long links between processes of one machine: with delay, and with the faults of long links.
package wan

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Direction of what flows through a link, seen from the side that dials.
type Direction int

// The directions: away from the side that dials, and towards it.
const (
	Forth Direction = iota
	Back
)

// Link is a way to one server. Its methods may be called from many goroutines.
type Link struct {
	listener net.Listener
	delay    time.Duration
	open     sync.WaitGroup

	mu     sync.Mutex
	server string
	closed bool
	conns  map[*conn]struct{}
	gates  [2]chan struct{} // of a direction that is stalled: closed when it flows again
}

// New opens a link to a server's address (host:port) that delays each direction by so much. Dial Addr instead of the server.
func New(server string, delay time.Duration) (*Link, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", server, err)
	}
	link := &Link{listener: l, delay: delay, server: server, conns: map[*conn]struct{}{}}
	link.open.Go(link.accept)
	return link, nil
}

// Addr is where to dial. It stays the same.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Stall lets nothing pass in one direction, and nobody is told: connections stay open and new ones can be opened, as over a
// route that swallows packets. What is sent meanwhile arrives after Flow, if its connection still stands.
func (l *Link) Stall(d Direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gates[d] == nil {
		l.gates[d] = make(chan struct{})
	}
}

// Flow ends Stall.
func (l *Link) Flow(d Direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gates[d] != nil {
		close(l.gates[d])
		l.gates[d] = nil
	}
}

// Turn leads to another server from now on. Connections to the one before are cut.
func (l *Link) Turn(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	for c := range l.conns {
		c.cut()
	}
}

// Close cuts everything and waits for its end.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		c.cut()
	}
	l.mu.Unlock()
	l.listener.Close() //nolint:errcheck // nobody dials any more
	l.open.Wait()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.open.Go(func() { l.carry(client) })
	}
}

// carry joins a client to the server until one of them leaves or the link is cut.
func (l *Link) carry(client net.Conn) {
	c := &conn{ends: [2]net.Conn{client}, over: make(chan struct{})}
	defer c.cut()
	l.mu.Lock()
	server, closed := l.server, l.closed
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, c)
	}()
	if closed {
		return
	}
	to, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
	if err != nil || !c.join(to) {
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(c, Forth, client, to) })
	pumps.Go(func() { l.pump(c, Back, to, client) })
	pumps.Wait()
}

// gate is what d waits for, nil while it flows.
func (l *Link) gate(d Direction) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gates[d]
}
