package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// errConnect marks failures to get a connection: no byte of the request was sent.
var errConnect = errors.New("connect")

type connectError struct{ err error }

func (e *connectError) Error() string        { return "connect: " + e.err.Error() }
func (e *connectError) Unwrap() error        { return e.err }
func (e *connectError) Is(target error) bool { return target == errConnect }

// dialer opens an upstream's connections. Where it fails no byte of a request was sent.
type dialer struct {
	plain   net.Dialer
	timeout time.Duration // of a connection, handshake included
	stall   time.Duration
	secure  func() *tls.Config
	next    string // the protocol over TLS
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, err := d.plain.DialContext(ctx, network, address)
	if err != nil {
		return nil, &connectError{err}
	}
	return Steady(conn, d.stall), nil
}

// dialTLS takes the place of the transport's own handshake, whose authorities are fixed.
func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := d.secure()
	c.NextProtos = []string{d.next}
	if c.ServerName == "" {
		if c.ServerName, _, err = net.SplitHostPort(address); err != nil {
			c.ServerName = address
		}
	}
	secured := tls.Client(conn, c)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close() //nolint:errcheck // it is of no use already
		return nil, &connectError{err}
	}
	return secured, nil
}
