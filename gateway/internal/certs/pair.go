package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lookEvery bounds how often the files are looked at.
const lookEvery = time.Second

// pair is a certificate and its key, read again when either file changes. It is asked at handshakes, so it needs no
// watcher and no goroutine of its own.
type pair struct {
	certFile, keyFile string
	logger            *slog.Logger

	current atomic.Pointer[tls.Certificate]
	looked  atomic.Int64 // Unix nanoseconds
	mu      sync.Mutex
	stamp   stamp
}

// stamp tells one state of the files from another.
type stamp struct {
	cert, key         time.Time
	certSize, keySize int64
}

func newPair(certFile, keyFile string, logger *slog.Logger) (*pair, error) {
	p := &pair{certFile: certFile, keyFile: keyFile, logger: logger}
	s, err := p.read()
	if err != nil {
		return nil, err
	}
	p.stamp = s
	p.looked.Store(time.Now().UnixNano())
	return p, nil
}

func (p *pair) get() *tls.Certificate {
	now, last := time.Now().UnixNano(), p.looked.Load()
	if now-last >= int64(lookEvery) && p.looked.CompareAndSwap(last, now) {
		p.refresh()
	}
	return p.current.Load()
}

func (p *pair) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, err := p.stat(); err == nil && s == p.stamp {
		return
	}
	s, err := p.read()
	if err != nil {
		// The pair may be half written; the next look tells.
		p.logger.Warn("certificate not renewed, the last good one stays", "error", err)
		return
	}
	p.stamp = s
	p.logger.Info("certificate renewed", "file", p.certFile)
}

func (p *pair) stat() (s stamp, err error) {
	c, err := os.Stat(p.certFile)
	if err != nil {
		return s, fmt.Errorf("look at certificate: %w", err)
	}
	k, err := os.Stat(p.keyFile)
	if err != nil {
		return s, fmt.Errorf("look at key: %w", err)
	}
	return stamp{c.ModTime(), k.ModTime(), c.Size(), k.Size()}, nil
}

func (p *pair) read() (stamp, error) {
	s, err := p.stat()
	if err != nil {
		return s, err
	}
	cert, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return s, fmt.Errorf("read certificate: %w", err)
	}
	p.current.Store(&cert)
	return s, nil
}
