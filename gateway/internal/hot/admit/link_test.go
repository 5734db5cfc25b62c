package admit

import (
	"net"
	"sync"
	"testing"
	"time"
)

// link is a TCP path to a server that can be slow, swallow bytes in either direction, or be cut.
type link struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	cut     bool
	delay   time.Duration // of every chunk towards the client
	deaf    bool          // nothing reaches the server
	mute    bool          // nothing comes back from it
	most    int           // connections open at once, at most so far
	wg      sync.WaitGroup
	stopped bool
}

func newLink(t testing.TB, target string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &link{listener: l, target: target, conns: make(map[net.Conn]struct{})}
	p.wg.Go(p.serve)
	t.Cleanup(p.close)
	return p
}

func (p *link) addr() string { return p.listener.Addr().String() }

// set changes the path for all connections, present and to come. A cut closes them.
func (p *link) set(change func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
	if p.cut {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

func (p *link) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.carry(c) })
	}
}

func (p *link) carry(client net.Conn) {
	defer client.Close()
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(server) {
		return
	}
	defer p.drop(server)
	p.wg.Go(func() {
		defer client.Close()
		defer server.Close()
		p.pump(client, server, func() (time.Duration, bool) { return p.delay, p.mute })
	})
	p.pump(server, client, func() (time.Duration, bool) { return 0, p.deaf })
}

func (p *link) pump(to, from net.Conn, how func() (delay time.Duration, swallow bool)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.mu.Lock()
			delay, swallow := how()
			p.mu.Unlock()
			if delay > 0 {
				<-time.After(delay) // the latency of the link
			}
			if !swallow {
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *link) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.stopped {
		return false
	}
	p.conns[c] = struct{}{}
	p.most = max(p.most, len(p.conns)/2)
	return true
}

func (p *link) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *link) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.stopped = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
