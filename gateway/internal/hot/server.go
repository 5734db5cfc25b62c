package hot

import (
	"crypto/tls"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/proxy"
)

// Listen is l with TLS where tlsConfig is not nil, and with the bound on clients that take no byte of what is sent to them.
func Listen(c *config.Config, l net.Listener, tlsConfig *tls.Config) net.Listener {
	l = steadyListener{l, c.Server.BodyTimeout}
	if tlsConfig != nil {
		l = tls.NewListener(l, tlsConfig)
	}
	return l
}

type steadyListener struct {
	net.Listener
	stall time.Duration
}

func (l steadyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return proxy.Steady(conn, l.stall), nil
}

// NewServer is the data port's server with the bounds of the configuration: how long a client may take for its request's
// head, how large that may be, HTTP/1.1 and HTTP/2 (without TLS only where h2c is on). tlsConfig, from certs.Server, is
// nil for plain HTTP. Bodies have no deadline: uploads and streams may last. Its listener should be one of Listen.
func NewServer(c *config.Config, handler http.Handler, tlsConfig *tls.Config, logger *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(tlsConfig != nil)
	protocols.SetUnencryptedHTTP2(tlsConfig == nil && c.Server.H2C)
	return &http.Server{
		Addr:      c.Listen,
		Handler:   handler,
		TLSConfig: tlsConfig,
		// OPTIONS * meets the guard like everything else.
		DisableGeneralOptionsHandler: true,
		Protocols:                    &protocols,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: c.Server.MaxConcurrentStreams},
		ReadHeaderTimeout:            c.Server.ReadHeaderTimeout,
		IdleTimeout:                  c.Server.IdleTimeout,
		MaxHeaderBytes:               c.Server.MaxHeaderBytes,
		ErrorLog:                     log.New(quiet{logger}, "", 0),
	}
}
