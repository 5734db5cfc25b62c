package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/shared/testenv"
)

func open(t *testing.T, url string, connections int) *Postgres {
	t.Helper()
	pg, err := Open(t.Context(), url, connections, noop.NewTracerProvider(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	return pg
}

// TestHostsAreTriedForThePrimary: the URL names several servers and says nothing else. A standby among them is passed over, and
// after a fail-over the one that was promoted is found by the pool that is there.
func TestHostsAreTriedForThePrimary(t *testing.T) {
	server := testenv.StartPostgresServer(t)
	url := server.Database(t).URL
	up(t, url)
	replica := server.Replica(t)
	primary := fmt.Sprintf("127.0.0.1:%d", server.Port)
	pg := open(t, strings.Replace(url, primary, fmt.Sprintf("127.0.0.1:%d,%s", replica.Port, primary), 1), 3)
	seen, err := pg.ReadLease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	term, err := pg.TakeLease(t.Context(), seen, "a")
	if err != nil {
		t.Fatalf("the standby comes first in the URL: %v", err)
	}
	server.Kill()
	if _, err := pg.RenewLease(t.Context(), term); err == nil {
		t.Fatal("a lease was renewed although there is no primary")
	}
	replica.Promote(t)
	testenv.Eventually(t, time.Minute, func() error {
		seen, err = pg.ReadLease(t.Context())
		return err
	})
	if next, err := pg.TakeLease(t.Context(), seen, "b"); err != nil || next>>32 <= term>>32 {
		t.Errorf("term %d, %v; want one of the next epoch after %d", next, err, term)
	}
	if err := pg.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSlowConnectionServesWhoComesNext: whoever asks gives up before the server has let anybody in. That must not be the end of
// the connection, or a server that takes longer than every caller waits would be away for ever.
func TestSlowConnectionServesWhoComesNext(t *testing.T) {
	url, _ := migrated(t)
	server := address.FindString(url)
	gate := newGate(t, server)
	pg := open(t, strings.Replace(url, server, gate.addr, 1), 3)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-gate.dialled; cancel() }()
	if _, err := pg.ReadLease(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the server has not answered: %v", err)
	}
	close(gate.open)
	testenv.Eventually(t, time.Minute, func() error {
		if pg.election.Stat().IdleConns() == 0 {
			return errors.New("the connection that nobody waits for is not there yet")
		}
		return nil
	})
	if _, err := pg.ReadLease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := pg.election.Stat().NewConnsCount(); n != 1 {
		t.Errorf("%d connections were made, want the first to serve", n)
	}
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// gate lets one connection through to a server, once it is open.
type gate struct {
	addr          string
	dialled, open chan struct{}
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // closed by the test's end
	g := &gate{addr: l.Addr().String(), dialled: make(chan struct{}), open: make(chan struct{})}
	go func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		close(g.dialled)
		<-g.open
		to, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer to.Close()
		go io.Copy(to, client) //nolint:errcheck // ends with the connection
		io.Copy(client, to)    //nolint:errcheck // ends with the connection
	}()
	return g
}

func TestConnectTimeout(t *testing.T) {
	for _, c := range []struct {
		query string
		want  time.Duration
	}{
		{"", connectTimeout},
		{"&connect_timeout=25", 25 * time.Second},
		{"&connect_timeout=0", connectTimeout}, // libpq's "for ever" would hold the pool's places
	} {
		pg := open(t, "postgres://app@127.0.0.1:1/x?sslmode=disable"+c.query, 0)
		for _, pool := range []time.Duration{pg.pool.Config().ConnConfig.ConnectTimeout, pg.election.Config().ConnConfig.ConnectTimeout} {
			if pool != c.want {
				t.Errorf("%q: %v, want %v", c.query, pool, c.want)
			}
		}
	}
}

// TestElectionDoesNotQueue: every connection of the ledger is taken, as by readers of long tables, and the lease is renewed.
func TestElectionDoesNotQueue(t *testing.T) {
	url, _ := migrated(t)
	pg := open(t, url, 3)
	for range 3 {
		c, err := pg.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it would wait for ever
	defer cancel()
	seen, err := pg.ReadLease(ctx)
	if err != nil {
		t.Fatal(err)
	}
	term, err := pg.TakeLease(ctx, seen, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pg.RenewLease(ctx, term); err != nil {
		t.Fatal(err)
	}
}
