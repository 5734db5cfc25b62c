package app

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// scarceLogEvery bounds the log lines about descriptors that have run out.
const scarceLogEvery = time.Minute

// acceptor says when connections cannot be accepted for want of file descriptors. net/http tries on by itself, so that they wait
// until others close; those that are open are served all along.
type acceptor struct {
	net.Listener
	logger *slog.Logger
	said   atomic.Pointer[time.Time]
}

func (a *acceptor) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		now := time.Now()
		if last := a.said.Load(); last == nil || now.Sub(*last) >= scarceLogEvery {
			a.said.Store(&now)
			a.logger.Warn("no file descriptor is left: new connections wait until others close; raise the limit of open files", "port", a.Addr().String(), "error", err)
		}
	}
	return conn, err
}
