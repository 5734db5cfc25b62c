package proxy

import (
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/gateway/internal/certs"
	"partidor.dev/partidor/gateway/internal/config"
)

// newTransport is the transport of an upstream whose answers must begin within responseTimeout.
func newTransport(c config.Upstream, responseTimeout time.Duration, logger *slog.Logger) (*http.Transport, error) {
	d := &dialer{
		plain: net.Dialer{KeepAlive: 30 * time.Second}, timeout: c.ConnectTimeout, stall: responseTimeout, next: "http/1.1",
	}
	var err error
	if d.secure, err = certs.Client(c.TLS, logger); err != nil {
		return nil, err
	}
	var protocols http.Protocols
	switch c.Protocol {
	case config.ProtocolH2:
		protocols.SetHTTP2(true)
		d.next = "h2"
	case config.ProtocolH2C:
		protocols.SetUnencryptedHTTP2(true)
	default:
		protocols.SetHTTP1(true)
	}
	return &http.Transport{
		DialContext:           d.dial,
		DialTLSContext:        d.dialTLS,
		ResponseHeaderTimeout: responseTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       c.IdleTimeout,
		MaxIdleConnsPerHost:   c.IdleConnections,
		MaxConnsPerHost:       c.MaxConnections,
		Protocols:             &protocols,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
		// Bodies pass as they are.
		DisableCompression: true,
	}, nil
}

// Steady gives up on a peer that takes no bytes for as long as stall: without it, an upstream that stops reading a large
// upload, or a client that stops reading a large answer, would hold both sides for ever.
func Steady(conn net.Conn, stall time.Duration) net.Conn {
	return &steadyConn{Conn: conn, stall: stall}
}

type steadyConn struct {
	net.Conn
	stall time.Duration
	limit atomic.Int64 // A deadline that was asked for, in Unix nanoseconds, such as TLS's for its farewell; 0: none.
}

func (c *steadyConn) Write(p []byte) (int, error) {
	deadline := time.Now().Add(c.stall)
	if limit := c.limit.Load(); limit != 0 && limit < deadline.UnixNano() {
		deadline = time.Unix(0, limit)
	}
	if err := c.Conn.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *steadyConn) SetWriteDeadline(t time.Time) error {
	c.note(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *steadyConn) SetDeadline(t time.Time) error {
	c.note(t)
	return c.Conn.SetDeadline(t)
}

func (c *steadyConn) note(t time.Time) {
	if t.IsZero() {
		c.limit.Store(0)
		return
	}
	c.limit.Store(t.UnixNano())
}

// CloseWrite ends our direction only, as upgraded connections do.
func (c *steadyConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
