package wan

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// conn is a client and the server it was led to.
type conn struct {
	mu   sync.Mutex
	ends [2]net.Conn
	over chan struct{} // closed when it is cut
	gone bool
}

// join adds the server's end, unless the connection was cut in the meantime.
func (c *conn) join(to net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		to.Close() //nolint:errcheck // nothing was said
		return false
	}
	c.ends[1] = to
	return true
}

func (c *conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	c.gone = true
	close(c.over)
	for _, end := range c.ends {
		if end != nil {
			end.Close() //nolint:errcheck // it is to be gone
		}
	}
}

// piece is what was read at one time.
type piece struct {
	data []byte
	at   time.Time
}

const (
	// pieceSize bytes and pieces of them may be on their way; then the sender waits, as for a full window.
	pieceSize = 16 << 10
	pieces    = 256
)

// pump carries what one end sends to the other, the end of its stream included. An error cuts the connection.
func (l *Link) pump(c *conn, d Direction, from, to net.Conn) {
	way := make(chan piece, pieces)
	go func() {
		defer close(way)
		for {
			data := make([]byte, pieceSize)
			n, err := from.Read(data)
			p := piece{data[:n], time.Now()}
			if n > 0 {
				select {
				case way <- p:
				case <-c.over:
					return
				}
			}
			if err == nil {
				continue
			}
			if !errors.Is(err, io.EOF) {
				c.cut()
			}
			return
		}
	}()
	for p := range way {
		if !c.wait(time.Until(p.at.Add(l.delay))) || !c.pass(l, d) {
			return
		}
		if _, err := to.Write(p.data); err != nil {
			c.cut()
			return
		}
	}
	if c.wait(l.delay) && c.pass(l, d) {
		if half, ok := to.(*net.TCPConn); ok {
			half.CloseWrite() //nolint:errcheck // the other side may have gone first
		}
	}
}

// wait is false if the connection was cut in the meantime.
func (c *conn) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.over:
		return false
	}
}

// pass waits until the direction flows. It is false if the connection was cut in the meantime.
func (c *conn) pass(l *Link, d Direction) bool {
	for gate := l.gate(d); gate != nil; gate = l.gate(d) {
		select {
		case <-gate:
		case <-c.over:
			return false
		}
	}
	return true
}
