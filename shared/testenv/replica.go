package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Replica starts a server that follows s: a copy of it, kept up to date, that can only be read until Promote.
func (s *PostgresServer) Replica(tb testing.TB) *PostgresServer {
	tb.Helper()
	parent, err := os.MkdirTemp("", "partidor-postgres-")
	if err != nil {
		tb.Fatalf("start replica: %v", err)
	}
	if c := s.credential; c != nil {
		if err := os.Chown(parent, int(c.Uid), int(c.Gid)); err != nil {
			tb.Fatalf("start replica: %v", err)
		}
	}
	r := &PostgresServer{Dir: filepath.Join(parent, "data"), suite: s.suite, credential: s.credential}
	tb.Cleanup(func() {
		if r.proc != nil {
			r.Kill()
		}
		_ = os.RemoveAll(parent)
	})
	if err := r.run("pg_basebackup", "-D", r.Dir, "-R", "-c", "fast", "--no-sync", "-U", "app", "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port)); err != nil {
		tb.Fatalf("start replica: %v", err)
	}
	for range attempts {
		if r.Port, err = freePort(); err != nil {
			break
		}
		if err = r.start(); err == nil {
			return r
		}
	}
	tb.Fatalf("start replica: %v", err)
	return nil
}

// Promote makes a replica a primary, on a new timeline, whether or not its former primary still runs.
func (s *PostgresServer) Promote(tb testing.TB) {
	tb.Helper()
	if err := s.exec("SELECT pg_promote(true, 60)"); err != nil {
		tb.Fatalf("promote: %v", err)
	}
}

// Follow is the database of the same name as p on server, such as a replica of p's.
func (p *Postgres) Follow(server *PostgresServer) *Postgres {
	return &Postgres{URL: server.url(filepath.Base(p.URL[:len(p.URL)-len("?sslmode=disable")])), Server: server}
}

// run is one of PostgreSQL's own programs, as the server's user.
func (s *PostgresServer) run(program string, args ...string) error {
	cmd, err := s.suite.command(filepath.Dir(s.Dir), s.credential, program, args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}
