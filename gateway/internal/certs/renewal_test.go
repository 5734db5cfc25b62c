package certs

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/certs/certstest"
	"partidor.dev/partidor/gateway/internal/config"
)

// replace puts another file's content in the place of path's, later than anything before it.
func replace(t *testing.T, path, by string, at time.Time) {
	t.Helper()
	b, err := os.ReadFile(by)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil { // File times may be coarser than the test is fast.
		t.Fatal(err)
	}
}

// lockedLog is a log that may be written by several goroutines.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) says(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), words)
}

// serveTLS answers every connection with one byte, once its handshake is over.
func serveTLS(t *testing.T, c *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Write([]byte{1})
			}()
		}
	}()
	return l.Addr().String()
}

// served tells whether a client with c gets its byte, and over a session that was resumed.
func served(t *testing.T, addr string, c *tls.Config) (ok, resumed bool) {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, c)
	if err != nil {
		var network net.Error
		if errors.As(err, &network) && network.Timeout() {
			t.Fatal(err)
		}
		return false, false
	}
	defer conn.Close()
	n, _ := io.ReadFull(conn, make([]byte, 1))
	return n == 1, conn.ConnectionState().DidResume
}

// Other authorities hold for the next handshake: for clients of the new ones, against those of the old ones, who do not get in
// by a session of before either. A file that cannot be read changes nothing.
func TestAuthoritiesAreRenewed(t *testing.T) {
	old, next := certstest.New(t), certstest.New(t)
	own := old.Issue(t, "gateway.test")
	file := old.File + ".followed"
	now := time.Now()
	replace(t, file, old.File, now)
	log := &lockedLog{}
	c, err := Server(config.TLS{CertFile: own.Cert, KeyFile: own.Key, ClientCAFile: file}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	addr := serveTLS(t, c)
	client := func(ca *certstest.Authority) *tls.Config {
		pair := ca.Issue(t, "client.test")
		c, err := Client(config.ClientTLS{CAFile: old.File, CertFile: pair.Cert, KeyFile: pair.Key, ServerName: "gateway.test"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		config := c()
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return config
	}
	ofOld, ofNext := client(old), client(next)
	if ok, _ := served(t, addr, ofOld); !ok {
		t.Fatal("a client of the authority is refused")
	}
	if ok, resumed := served(t, addr, ofOld); !ok || !resumed {
		t.Fatalf("the second time: served %t, session resumed %t", ok, resumed)
	}
	if ok, _ := served(t, addr, ofNext); ok {
		t.Fatal("a client of another authority is served")
	}
	until := func(what string, reached func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !reached(); {
			if time.Now().After(deadline) {
				t.Fatalf("not within 30 s: %s", what)
			}
		}
	}
	replace(t, file, own.Key, now.Add(time.Second))
	until("the bad file is told", func() bool {
		if ok, _ := served(t, addr, ofOld); !ok {
			t.Fatal("a bad file took effect")
		}
		return log.says("the last good one stays")
	})
	replace(t, file, next.File, now.Add(2*time.Second))
	until("a client of the new authority is served", func() bool { ok, _ := served(t, addr, ofNext); return ok })
	if ok, resumed := served(t, addr, ofOld); ok {
		t.Errorf("a client of the old authority is served, session resumed %t", resumed)
	}
}

// The authorities of servers that the gateway calls are followed, too.
func TestRootsAreRenewed(t *testing.T) {
	old, next := certstest.New(t), certstest.New(t)
	file := old.File + ".followed"
	now := time.Now()
	replace(t, file, old.File, now)
	c, err := Client(config.ClientTLS{CAFile: file}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	before := c()
	replace(t, file, next.File, now.Add(time.Second))
	for deadline := time.Now().Add(30 * time.Second); c().RootCAs.Equal(before.RootCAs); {
		if time.Now().After(deadline) {
			t.Fatal("the old authorities are still in use after 30 s")
		}
	}
}
