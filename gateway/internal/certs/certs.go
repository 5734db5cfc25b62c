// Package certs turns the TLS sections of the configuration into tls.Configs whose certificates follow their files: a
// renewed certificate serves the next handshake, without a restart. A renewal that cannot be read leaves the last good
// one in use.
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
	if c.ClientCAFile != "" {
		pool, err := authorities(c.ClientCAFile)
		if err != nil {
			return nil, err
		}
		t.ClientCAs, t.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return t, nil
}

// Client is the TLS towards another server. With an empty section it is TLS with the system's authorities.
func Client(c config.ClientTLS, logger *slog.Logger) (*tls.Config, error) {
	t := &tls.Config{MinVersion: version(c.MinVersion), ServerName: c.ServerName}
	if c.CAFile != "" {
		pool, err := authorities(c.CAFile)
		if err != nil {
			return nil, err
		}
		t.RootCAs = pool
	}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := newPair(c.CertFile, c.KeyFile, logger)
		if err != nil {
			return nil, err
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.get(), nil }
	}
	return t, nil
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
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read authorities: %s: %w", file, errors.New("no certificate in it"))
	}
	return pool, nil
}
