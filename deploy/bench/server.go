package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is the Redis that all subjects share: one redis-server, or the masters of a cluster.
type server struct {
	addr string // of the first
	cmd  *exec.Cmd
	dir  string
	ctl  *redis.Client
	// others are the cluster's further masters.
	others []*server
}

func (s *server) all() []*server { return append([]*server{s}, s.others...) }

func (s *server) addrs() (addrs []string) {
	for _, one := range s.all() {
		addrs = append(addrs, one.addr)
	}
	return addrs
}

func startServer(ctx context.Context, config ...string) (*server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("find redis-server (install it with `make deps`): %w", err)
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	dir, err := os.MkdirTemp("", "partidor-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for redis: %w", err)
	}
	args := append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--loglevel", "warning"}, config...)
	cmd := exec.Command(binary, args...)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	s := &server{addr: addr, cmd: cmd, dir: dir, ctl: redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})}
	for range 1000 {
		if err = s.ctl.Ping(ctx).Err(); err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			s.stop()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.stop()
	return nil, fmt.Errorf("wait for redis-server: %w", err)
}

func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return addr, nil
}

func (s *server) stop() {
	for _, one := range s.all() {
		_ = one.ctl.Close()
		_ = one.cmd.Process.Kill()
		_ = one.cmd.Wait()
		_ = os.RemoveAll(one.dir)
	}
}

func (s *server) flush(ctx context.Context) error {
	for _, one := range s.all() {
		if err := one.ctl.FlushAll(ctx).Err(); err != nil {
			return fmt.Errorf("empty redis: %w", err)
		}
	}
	return nil
}

// reading is the servers' own account of their work so far.
type reading struct {
	cpu   time.Duration
	calls float64 // commands that clients sent
}

// fromClients are the commands that a subject sends itself; what scripts call inside is not counted.
var fromClients = []string{"ping", "eval", "evalsha", "fcall", "multi"}

func (s *server) read(ctx context.Context) (reading, error) {
	var r reading
	for _, one := range s.all() {
		cpu, err := one.ctl.Info(ctx, "cpu").Result()
		if err != nil {
			return reading{}, fmt.Errorf("read redis's CPU time: %w", err)
		}
		stats, err := one.ctl.Info(ctx, "commandstats").Result()
		if err != nil {
			return reading{}, fmt.Errorf("read redis's command counts: %w", err)
		}
		seconds := field(cpu, "used_cpu_user:") + field(cpu, "used_cpu_sys:")
		r.cpu += time.Duration(seconds * float64(time.Second))
		for _, name := range fromClients {
			r.calls += field(stats, "cmdstat_"+name+":calls=")
		}
	}
	return r, nil
}

// field reads the number behind a prefix in an INFO answer, 0 where it is missing.
func field(info, prefix string) float64 {
	_, rest, ok := strings.Cut(info, "\n"+prefix)
	if !ok {
		return 0
	}
	end := strings.IndexAny(rest, ",\r\n")
	if end < 0 {
		end = len(rest)
	}
	v, err := strconv.ParseFloat(rest[:end], 64)
	if err != nil {
		return 0
	}
	return v
}
