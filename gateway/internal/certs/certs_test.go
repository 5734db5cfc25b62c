package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/certs/certstest"
	"partidor.dev/partidor/gateway/internal/config"
)

func nameOf(t *testing.T, c *tls.Certificate) string {
	t.Helper()
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.Subject.CommonName
}

// A renewed certificate serves the next handshake after the files are looked at again; a half-written one does not.
func TestRenewal(t *testing.T) {
	ca := certstest.New(t)
	files := ca.Issue(t, "one")
	var log bytes.Buffer
	p, err := newPair(files.Cert, files.Key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	look := func() string {
		p.looked.Store(0)
		return nameOf(t, p.get())
	}
	touch := func(d time.Duration) { // File times may be coarser than the test is fast.
		at := time.Now().Add(d)
		if err := os.Chtimes(files.Cert, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if got := look(); got != "one" {
		t.Fatalf("at first: %s", got)
	}
	if err := os.WriteFile(files.Cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch(time.Second)
	if got := look(); got != "one" || !strings.Contains(log.String(), "last good one stays") {
		t.Errorf("half written: %s, log %s", got, &log)
	}
	ca.Renew(t, files, "two")
	touch(2 * time.Second)
	if got := nameOf(t, p.get()); got != "one" {
		t.Errorf("looked at again at once: %s", got)
	}
	if got := look(); got != "two" {
		t.Errorf("renewed: %s", got)
	}
}

func TestRefused(t *testing.T) {
	ca := certstest.New(t)
	a, b := ca.Issue(t, "a"), ca.Issue(t, "b")
	for name, c := range map[string]config.TLS{
		"another's key":  {CertFile: a.Cert, KeyFile: b.Key},
		"no key":         {CertFile: a.Cert, KeyFile: "/nowhere"},
		"no authorities": {CertFile: a.Cert, KeyFile: a.Key, ClientCAFile: a.Key},
	} {
		if _, err := Server(c, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := Client(config.ClientTLS{CAFile: "/nowhere"}, nil); err == nil {
		t.Error("authorities that are missing: accepted")
	}
	if c, err := Server(config.TLS{}, nil); c != nil || err != nil {
		t.Errorf("no TLS: %v, %v", c, err)
	}
}

func TestMinimumVersion(t *testing.T) {
	for v, want := range map[string]uint16{"": tls.VersionTLS12, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		c, err := Client(config.ClientTLS{MinVersion: v}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c().MinVersion; got != want {
			t.Errorf("%q: %x", v, got)
		}
	}
}
