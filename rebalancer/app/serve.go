package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
)

// drain is how long requests to the admin port may take to finish at the end.
const drain = 5 * time.Second

// serve answers on the admin port until ctx ends.
func (a *app) serve(ctx context.Context) error {
	server := &http.Server{
		Handler: otelhttp.NewHandler(a.admin.Handler(), "admin", otelhttp.WithTracerProvider(a.telemetry.TracerProvider),
			otelhttp.WithMeterProvider(a.telemetry.MeterProvider), otelhttp.WithFilter(worthATrace)),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(a.telemetry.Logger.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	if a.config.TLS.CertFile != "" {
		var err error
		if server.TLSConfig, err = clientsOf(a.config.TLS.ClientCAFile); err != nil {
			return err
		}
		go func() { done <- server.ServeTLS(a.listener, a.config.TLS.CertFile, a.config.TLS.KeyFile) }()
	} else {
		go func() { done <- server.Serve(a.listener) }()
	}
	select {
	case err := <-done:
		return fmt.Errorf("admin port: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		server.Close() //nolint:errcheck // whoever is left has had the time
	}
	<-done //nolint:errcheck // why it ended is no news: it was asked to
	return nil
}

// worthATrace leaves out probes, scrapes and streams that last as long as somebody looks.
func worthATrace(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics", "/v1/events":
		return false
	}
	return true
}

// clientsOf demands certificates of the authority in file, if one is given.
func clientsOf(file string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return c, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tls.client_ca_file: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("tls.client_ca_file: holds no certificate")
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}
