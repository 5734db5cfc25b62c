package hot

import (
	"crypto/tls"
	"log"
	"log/slog"
	"net/http"

	"partidor.dev/partidor/gateway/internal/config"
)

// NewServer is the data port's server with the bounds of the configuration: how long a client may take for its request's
// head, how large that may be, HTTP/1.1 and HTTP/2 (without TLS only where h2c is on). tlsConfig, from certs.Server, is
// nil for plain HTTP. Bodies have no deadline: uploads and streams may last.
func NewServer(c *config.Config, handler http.Handler, tlsConfig *tls.Config, logger *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(tlsConfig != nil)
	protocols.SetUnencryptedHTTP2(tlsConfig == nil && c.Server.H2C)
	return &http.Server{
		Addr:              c.Listen,
		Handler:           handler,
		TLSConfig:         tlsConfig,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: c.Server.MaxConcurrentStreams},
		ReadHeaderTimeout: c.Server.ReadHeaderTimeout,
		IdleTimeout:       c.Server.IdleTimeout,
		MaxHeaderBytes:    c.Server.MaxHeaderBytes,
		ErrorLog:          log.New(quiet{logger}, "", 0),
	}
}
