package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"partidor.dev/partidor/deploy/internal/wan"
	gateway "partidor.dev/partidor/gateway/app"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
)

// region is one data centre: a Redis-compatible server and gateways in front of it.
type region struct {
	name     string
	redis    *miniredis.Miniredis
	address  string    // of redis, or of the way to it
	link     *wan.Link // that way, which faults break; nil for a demo without any
	gateways []string  // base URLs
	serving  chan net.Addr
}

func startRegion(ctx context.Context, work *errgroup.Group, name string, breakable bool) (*region, error) {
	r := &region{name: name, redis: miniredis.NewMiniRedis(), serving: make(chan net.Addr, instances)}
	if err := r.redis.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("redis of %s: %w", name, err)
	}
	r.address = r.redis.Addr()
	if breakable { // miniredis itself must not be closed while it answers
		var err error
		if r.link, err = wan.New(r.address, 0); err != nil {
			r.redis.Close()
			return nil, err
		}
		r.address = r.link.Addr()
	}
	// miniredis lets keys expire only as its own time is moved on.
	work.Go(func() error {
		defer r.redis.Close()
		if breakable {
			defer r.link.Close()
		}
		last := time.Now()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case now := <-tick.C:
				r.redis.FastForward(now.Sub(last))
				last = now
			}
		}
	})
	return r, nil
}

// startGateway runs the gateway itself, as its command would, on a port of its own.
func (r *region) startGateway(ctx context.Context, work *errgroup.Group, i int, rules, upstream string, bus *server.Server, logs io.Writer) error {
	instance := fmt.Sprintf("%s-%d", r.name, i+1)
	// Everything shares this machine's processors, so decisions get more time than the 5 ms of a gateway that is alone.
	config := fmt.Sprintf(`
region: %s
instance: %s
upstreams:
  orders: {targets: [{url: %s}]}
routes:
  - {id: %s, methods: [POST], path: /orders, upstream: orders}
redis: {addresses: [%q]}
rules: {file: %q}
decision: {deadline: 1s}
usage: {interval: 500ms, heartbeat: 500ms}
`, r.name, instance, upstream, route, r.address, rules)
	data, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	admin, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	tel := telemetry.Discard()
	tel.Logger = slog.New(slog.NewJSONHandler(logs, nil)).With("instance", instance)
	work.Go(func() error {
		return gateway.Run(ctx, gateway.Options{
			Config: []byte(config), Version: "demo", Listener: data, AdminListener: admin, Telemetry: tel,
			NATS:    []nats.Option{nats.InProcessServer(bus)},
			Serving: func(data, _ net.Addr) { r.serving <- data },
		})
	})
	return nil
}

// bucketState is what a region's Redis holds of a key.
type bucketState struct {
	tokens, capacity float64
	share            limit.Share
	moved            bool
}

// bucket reads a key as a person with redis-cli would, and refills it up to now.
func (r *region) bucket(t tenant, now time.Time) bucketState {
	name := t.key().Redis()
	share, moved := base[r.name], false
	if s, err := strconv.ParseInt(r.redis.HGet(name, "share"), 10, 64); err == nil {
		share, moved = limit.Share(s), true
	}
	slice := t.rule().SliceOf(share)
	b := bucketState{tokens: slice.Capacity, capacity: slice.Capacity, share: share, moved: moved}
	tokens, err := strconv.ParseFloat(r.redis.HGet(name, "tokens"), 64)
	ts, err2 := strconv.ParseFloat(strings.TrimSpace(r.redis.HGet(name, "ts")), 64)
	if err == nil && err2 == nil {
		age := max(0, float64(now.UnixMicro())/1000-ts) / 1000
		b.tokens = min(slice.Capacity, tokens+slice.Rate*age)
	}
	return b
}
