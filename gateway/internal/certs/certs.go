// Package certs turns the TLS sections of the configuration into tls.Configs whose certificates and authorities follow their
// files: a renewed one holds for the next handshake, without a restart. A renewal that cannot be read leaves the last good one
// in use.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"partidor.dev/partidor/gateway/internal/config"
)

// Server is the TLS of a listening port; nil where the port speaks plain HTTP. Bad renewals are told to logger.
func Server(c config.TLS, logger *slog.Logger) (*tls.Config, error) {
	if !c.Enabled() {
		return nil, nil
	}
	pair, err := newPair(c.CertFile, c.KeyFile, logger)
	if err != nil {
		return nil, err
	}
	t := &tls.Config{MinVersion: version(c.MinVersion), NextProtos: []string{"h2", "http/1.1"}}
	t.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil }
	if c.ClientCAFile == "" {
		return t, nil
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	// A configuration for each state of the file: clients that resume a session are judged by the new authorities, too.
	of, err := follow("client authorities", []string{c.ClientCAFile}, func() (*tls.Config, error) {
		next := t.Clone()
		pool, err := authorities(c.ClientCAFile)
		next.ClientCAs = pool
		return next, err
	}, logger)
	if err != nil {
		return nil, err
	}
	outer := of.get().Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return of.get(), nil }
	return outer, nil
}

// Client is the TLS towards another server, in a function that is to be called for each connection, as the authorities may
// have changed. With an empty section it is TLS with the system's authorities.
func Client(c config.ClientTLS, logger *slog.Logger) (func() *tls.Config, error) {
	t := &tls.Config{MinVersion: version(c.MinVersion), ServerName: c.ServerName}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := newPair(c.CertFile, c.KeyFile, logger)
		if err != nil {
			return nil, err
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.get(), nil }
	}
	if c.CAFile == "" {
		return t.Clone, nil
	}
	roots, err := follow("authorities", []string{c.CAFile}, func() (*x509.CertPool, error) { return authorities(c.CAFile) }, logger)
	if err != nil {
		return nil, err
	}
	return func() *tls.Config {
		next := t.Clone()
		next.RootCAs = roots.get()
		return next
	}, nil
}

func newPair(certFile, keyFile string, logger *slog.Logger) (*followed[tls.Certificate], error) {
	return follow("certificate", []string{certFile, keyFile}, func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	}, logger)
}

func version(v string) uint16 {
	if v == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %w", file, errors.New("no certificate in it"))
	}
	return pool, nil
}
