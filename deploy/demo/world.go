package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	rebalancer "partidor.dev/partidor/rebalancer/app"
	"partidor.dev/partidor/shared/rulesfile"
)

// instances is how many gateways a region has.
const instances = 2

// startTimeout bounds how long everything may take until it serves.
const startTimeout = 20 * time.Second

// world is everything that would stand in two data centres.
type world struct {
	regions []*region
	console string // URL of the rebalancer
}

// startWorld starts every part on work and returns when all gateways serve.
func startWorld(ctx context.Context, work *errgroup.Group, dir string, tenants []tenant, o options) (*world, error) {
	logs, err := logOutput(o)
	if err != nil {
		return nil, err
	}
	rules, err := writeRules(dir, tenants)
	if err != nil {
		return nil, err
	}
	bus, err := startNATS(ctx, work)
	if err != nil {
		return nil, err
	}
	upstream, err := startUpstream(ctx, work)
	if err != nil {
		return nil, err
	}
	w := &world{}
	if err := w.startRebalancer(ctx, work, rules, bus, logs, o); err != nil {
		return nil, err
	}
	for _, name := range regions {
		r, err := startRegion(ctx, work, name, o.soak > 0)
		if err != nil {
			return nil, err
		}
		w.regions = append(w.regions, r)
		for i := range instances {
			if err := r.startGateway(ctx, work, i, rules, upstream, bus, logs); err != nil {
				return nil, err
			}
		}
	}
	return w, w.awaitServing(ctx)
}

func (w *world) awaitServing(ctx context.Context) error {
	timeout := time.After(startTimeout)
	for _, r := range w.regions {
		for range instances {
			select {
			case addr := <-r.serving:
				r.gateways = append(r.gateways, "http://"+addr.String())
			case <-timeout:
				return errors.New("gateways do not serve; see -logs")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (w *world) startRebalancer(ctx context.Context, work *errgroup.Group, rules string, bus *server.Server, logs io.Writer, o options) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.console)
	if err != nil { // somebody else has the usual port
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return fmt.Errorf("console: %w", err)
		}
	}
	w.console = "http://" + l.Addr().String()
	config := fmt.Sprintf(`
instance: rebalancer
rules_file: %q
nats: {urls: ["nats://in.process:4222"]} # of which only the form matters
access: {anonymous: operator}
parameters: {mean_half_life: 2s, peak_half_life: 6s}
`, rules)
	work.Go(func() error {
		return rebalancer.Run(ctx, rebalancer.Options{
			Config: []byte(config), Version: "demo", LogOutput: logs, Listener: l, Cycle: o.cycle,
			NATS: []nats.Option{nats.InProcessServer(bus)},
		})
	})
	return nil
}

// writeRules makes the file that gateways and rebalancer read. Each tenant's API key is its name with "key-" before it.
func writeRules(dir string, tenants []tenant) (string, error) {
	f := rulesfile.File{Revision: 1, Regions: map[string]rulesfile.Region{}}
	for name, share := range base {
		f.Regions[name] = rulesfile.Region{Base: rulesfile.Part(share)}
	}
	for _, t := range tenants {
		f.Rules = append(f.Rules, rulesfile.Rule{Tenant: t.name, Route: route, Capacity: t.capacity, RefillPerSecond: t.refill, OnError: t.onError})
		f.Tenants = append(f.Tenants, rulesfile.Tenant{ID: t.name})
		f.APIKeys = append(f.APIKeys, rulesfile.APIKey{Tenant: t.name, Key: "key-" + t.name})
	}
	data, err := yaml.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("rules: %w", err)
	}
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("rules: %w", err)
	}
	return path, nil
}

func startNATS(ctx context.Context, work *errgroup.Group) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	s.Start()
	work.Go(func() error {
		<-ctx.Done()
		s.Shutdown()
		s.WaitForShutdown()
		return nil
	})
	if !s.ReadyForConnections(startTimeout) {
		return nil, errors.New("nats: not ready")
	}
	return s, nil
}

// startUpstream is the service behind all gateways. It answers at once.
func startUpstream(ctx context.Context, work *errgroup.Group) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("upstream: %w", err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "order of %s taken\n", cmp.Or(r.Header.Get("X-Tenant-Id"), "somebody"))
	})}
	serveUntil(ctx, work, s, l)
	return "http://" + l.Addr().String(), nil
}

func serveUntil(ctx context.Context, work *errgroup.Group, s *http.Server, l net.Listener) {
	work.Go(func() error {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	work.Go(func() error {
		<-ctx.Done()
		return s.Close()
	})
}

func logOutput(o options) (io.Writer, error) {
	if o.logs == "" {
		return io.Discard, nil
	}
	f, err := os.Create(o.logs)
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	return f, nil
}
