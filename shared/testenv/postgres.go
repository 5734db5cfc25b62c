package testenv

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is one database on a PostgreSQL server.
type Postgres struct {
	// URL connects to the database as its owner.
	URL string
	// Server is where the database lives. It is shared by the whole test binary unless StartPostgresServer made it.
	Server *PostgresServer
}

// PostgresServer is one running PostgreSQL cluster.
type PostgresServer struct {
	// Dir is the data directory.
	Dir  string
	Port int

	suite      suite
	credential *syscall.Credential
	proc       *process
	databases  atomic.Int64
}

// StartPostgres creates a fresh, empty database on the test binary's shared server. It is dropped when the test ends.
func StartPostgres(tb testing.TB) *Postgres {
	tb.Helper()
	s, err := sharedPostgres()
	if err != nil {
		tb.Fatalf("start postgres: %v", err)
	}
	return s.Database(tb)
}

// sharedPostgres lives until the test binary ends; then its guard removes it.
var sharedPostgres = sync.OnceValues(func() (*PostgresServer, error) { return newPostgresServer() })

// StartPostgresServer starts a server of the test's own, which it may kill, pause and restart.
func StartPostgresServer(tb testing.TB) *PostgresServer {
	tb.Helper()
	s, err := newPostgresServer()
	if err != nil {
		tb.Fatalf("start postgres: %v", err)
	}
	tb.Cleanup(func() {
		if s.proc != nil {
			s.Kill()
		}
		_ = os.RemoveAll(filepath.Dir(s.Dir))
	})
	return s
}

func newPostgresServer() (*PostgresServer, error) {
	suite, err := lookup("initdb", postgresImage, "/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{suite: suite}
	if s.credential, err = postgresCredential(); err != nil {
		return nil, err
	}
	parent, err := os.MkdirTemp("", "partidor-postgres-")
	if err != nil {
		return nil, err
	}
	s.Dir = filepath.Join(parent, "data")
	if c := s.credential; c != nil {
		if err := os.Chown(parent, int(c.Uid), int(c.Gid)); err != nil {
			return nil, err
		}
	}
	if err := s.run("initdb", "-D", s.Dir, "-A", "trust", "-U", "app", "-E", "UTF8", "--locale", "C", "--no-sync"); err != nil {
		_ = os.RemoveAll(parent)
		return nil, err
	}
	for range attempts {
		if s.Port, err = freePort(); err != nil {
			break
		}
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	_ = os.RemoveAll(parent)
	return nil, err
}

// postgresCredential is the account to run as: PostgreSQL refuses root, so root becomes the package's own user.
func postgresCredential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("postgres refuses to run as root and there is no user postgres; install it with: make deps")
}

func (s *PostgresServer) start() error {
	parent := filepath.Dir(s.Dir)
	p, err := s.suite.process(parent, s.credential, "postgres", []string{"-D", s.Dir, "-p", strconv.Itoa(s.Port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + parent,
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
		"-c", "shared_buffers=32MB", "-c", "max_connections=200"})
	if err != nil {
		return err
	}
	if err := p.spawn(parent); err != nil {
		return err
	}
	if err := p.awaitReady(s.probe); err != nil {
		p.end(syscall.SIGQUIT)
		return err
	}
	s.proc = p
	return nil
}

func (s *PostgresServer) probe() error {
	return s.exec("SELECT 1")
}

func (s *PostgresServer) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the database goes with the test
	_, err = conn.Exec(ctx, sql)
	return err
}

func (s *PostgresServer) url(database string) string {
	return fmt.Sprintf("postgres://app@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
}

// Database creates a fresh, empty database, dropped when the test ends.
func (s *PostgresServer) Database(tb testing.TB) *Postgres {
	tb.Helper()
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	if err := s.exec("CREATE DATABASE " + name + " TEMPLATE template0"); err != nil {
		tb.Fatalf("create database: %v", err)
	}
	tb.Cleanup(func() {
		if s.proc != nil {
			_ = s.exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
		}
	})
	return &Postgres{URL: s.url(name), Server: s}
}

// Stop ends the server in order but without waiting for its clients (a fast shutdown).
func (s *PostgresServer) Stop() {
	s.proc.end(syscall.SIGINT)
	s.proc = nil
}

// Kill ends the server as a crash would: connections are cut and nothing is written out, so that the next start recovers.
func (s *PostgresServer) Kill() {
	s.proc.end(syscall.SIGQUIT) // an immediate shutdown reaps the server's children, SIGKILL would leave them behind
	s.proc = nil
}

// Restart starts the server again on the same port and data, stopping it first if it still runs.
func (s *PostgresServer) Restart(tb testing.TB) {
	tb.Helper()
	if s.proc != nil {
		s.Stop()
	}
	if err := s.start(); err != nil {
		tb.Fatalf("restart postgres: %v", err)
	}
}

// Conn is a connection to the database, closed when the test ends.
func (p *Postgres) Conn(tb testing.TB) *pgx.Conn {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.URL)
	if err != nil {
		tb.Fatalf("connect to postgres: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}
