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

// server is the redis-server all subjects share.
type server struct {
	addr string
	cmd  *exec.Cmd
	dir  string
	ctl  *redis.Client
}

func startServer(ctx context.Context) (*server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("find redis-server (install it with `make deps`): %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	dir, err := os.MkdirTemp("", "partidor-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for redis: %w", err)
	}
	cmd := exec.Command(binary, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--loglevel", "warning")
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	s := &server{addr: addr, cmd: cmd, dir: dir, ctl: redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})}
	for range 100 {
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

func (s *server) stop() {
	_ = s.ctl.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// reading is the server's own account of its work so far.
type reading struct {
	cpu   time.Duration
	calls float64 // commands that clients sent
}

// fromClients are the commands that a subject sends itself; what scripts call inside is not counted.
var fromClients = []string{"ping", "eval", "evalsha", "fcall", "multi"}

func (s *server) read(ctx context.Context) (reading, error) {
	cpu, err := s.ctl.Info(ctx, "cpu").Result()
	if err != nil {
		return reading{}, fmt.Errorf("read redis's CPU time: %w", err)
	}
	stats, err := s.ctl.Info(ctx, "commandstats").Result()
	if err != nil {
		return reading{}, fmt.Errorf("read redis's command counts: %w", err)
	}
	var r reading
	seconds := field(cpu, "used_cpu_user:") + field(cpu, "used_cpu_sys:")
	r.cpu = time.Duration(seconds * float64(time.Second))
	for _, name := range fromClients {
		r.calls += field(stats, "cmdstat_"+name+":calls=")
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
