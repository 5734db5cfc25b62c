package testenv

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is one redis-server.
type Redis struct {
	// Addr is host:port. It stays the same over Restart.
	Addr string
	// Dir is the server's working directory: dump.rdb and appendonlydir are found there.
	Dir string

	tb    testing.TB
	port  int
	file  []string // at most one redis.conf
	args  []string
	proc  *process
	suite suite
}

// RedisOption changes how a Redis is started.
type RedisOption func(*Redis)

// RedisConfig adds one directive of redis.conf, as in RedisConfig("maxmemory", "10mb").
func RedisConfig(name string, values ...string) RedisOption {
	return func(r *Redis) { r.args = append(append(r.args, "--"+name), values...) }
}

// RedisFile starts the server with the redis.conf at path. Port, addresses, directory and what RedisConfig says win over it.
func RedisFile(path string) RedisOption {
	return func(r *Redis) { r.file = []string{path} }
}

// RedisAppendOnly makes every write durable before it is answered, so that Kill and Restart lose nothing.
func RedisAppendOnly() RedisOption {
	return func(r *Redis) { r.args = append(r.args, "--appendonly", "yes", "--appendfsync", "always") }
}

// StartRedis starts a redis-server without persistence and waits until it answers.
func StartRedis(tb testing.TB, opts ...RedisOption) *Redis {
	tb.Helper()
	r := &Redis{tb: tb, Dir: tb.TempDir(), suite: find(tb, "redis-server", redisImage)}
	for _, opt := range opts {
		opt(r)
	}
	tb.Cleanup(func() {
		if r.proc != nil {
			r.proc.kill()
		}
	})
	var err error
	for range attempts {
		if r.port, err = freePort(); err != nil {
			break
		}
		r.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port))
		if err = r.start(); err == nil {
			return r
		}
	}
	tb.Fatalf("start redis: %v", err)
	return nil
}

func (r *Redis) start() error {
	args := append(slices.Clone(r.file), "--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.Dir,
		"--save", "", "--daemonize", "no", "--loglevel", "warning")
	p, err := r.suite.process(r.Dir, nil, "redis-server", append(args, r.args...))
	if err != nil {
		return err
	}
	if err := p.spawn(""); err != nil {
		return err
	}
	if err := p.awaitReady(r.probe); err != nil {
		p.kill()
		return err
	}
	r.proc = p
	return nil
}

// probe succeeds once the server answers commands; wanting a password is an answer too. It speaks by hand, since go-redis
// logs every refused connection.
func (r *Redis) probe() error {
	c, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(answer, "+PONG") && !strings.HasPrefix(answer, "-NOAUTH") {
		return fmt.Errorf("redis answers %q", answer)
	}
	return nil
}

// Client is a new client of this server, closed when the test ends. It retries nothing, so that tests see every fault.
func (r *Redis) Client() *redis.Client {
	r.tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	r.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Kill ends the server as a crash would: at once, with nothing saved.
func (r *Redis) Kill() {
	r.tb.Helper()
	if r.proc == nil {
		r.tb.Fatal("redis is not running")
	}
	r.proc.kill()
	r.proc = nil
}

// Stop ends the server in order, as an upgrade would.
func (r *Redis) Stop() {
	r.tb.Helper()
	if r.proc == nil {
		r.tb.Fatal("redis is not running")
	}
	r.proc.end(syscall.SIGTERM)
	r.proc = nil
}

// Restart starts the server again on the same address and directory, killing it first if it still runs. Without
// persistence its data is lost.
func (r *Redis) Restart() {
	r.tb.Helper()
	if r.proc != nil {
		r.Kill()
	}
	if err := r.start(); err != nil {
		r.tb.Fatalf("restart redis: %v", err)
	}
}

// Pause freezes the process (SIGSTOP): connections stay open and nothing is answered, until Resume.
func (r *Redis) Pause() { r.proc.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (r *Redis) Resume() { r.proc.signal(syscall.SIGCONT) }
