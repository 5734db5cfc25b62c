package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	gateway "partidor.dev/partidor/gateway/app"
)

// front is one way to an upstream: an address, and the head that callers send.
type front struct {
	name    string
	addr    string
	request string
}

// proxyReport is one run of the proxies.
type proxyReport struct {
	When    time.Time         `json:"when"`
	Machine map[string]string `json:"machine"`
	Callers int               `json:"callers"`
	Results []proxyResult     `json:"results"`
}

type proxyResult struct {
	Front string `json:"front"`
	proxySample
}

// proxySample is what one round of one front gave. CPU and allocations are of the whole process per request: callers,
// front and upstream; only their differences between fronts mean something.
type proxySample struct {
	Requests  int64         `json:"requests"`
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	CPU       float64       `json:"cpu_us"`
	Allocs    float64       `json:"allocs"`
}

// runProxies measures the gateway with its limiter, without it, and a plain httputil.ReverseProxy: one upstream, one load,
// rounds that take turns.
func runProxies(ctx context.Context, w io.Writer, o options, callers int) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	fronts, end, err := startFronts(ctx, s.addr)
	if err != nil {
		return err
	}
	defer end()
	samples := map[string][]proxySample{}
	for range o.rounds {
		for _, f := range fronts {
			if _, err := ask(ctx, f, callers, o.round/10); err != nil {
				return fmt.Errorf("warm %s: %w", f.name, err)
			}
			x, err := measureFront(ctx, f, callers, o.round)
			if err != nil {
				return fmt.Errorf("measure %s: %w", f.name, err)
			}
			samples[f.name] = append(samples[f.name], x)
		}
	}
	r := proxyReport{When: time.Now(), Machine: machine(), Callers: callers}
	for _, f := range fronts {
		r.Results = append(r.Results, proxyResult{f.name, medianFront(samples[f.name])})
	}
	return r.markdown(w, o)
}

const plainFront, openFront, limitedFront = "httputil.ReverseProxy", "gateway, unlimited route", "gateway, limited"

// startFronts starts the upstream and everything in front of it.
func startFronts(ctx context.Context, redisAddr string) (fronts []front, end func(), err error) {
	var ends []func()
	end = func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}
	serve := func(h http.Handler) (string, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("listen: %w", err)
		}
		s := &http.Server{Handler: h}
		ends = append(ends, func() { _ = s.Close() })
		go func() { _ = s.Serve(l) }()
		return l.Addr().String(), nil
	}
	upstream, err := serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) }))
	if err != nil {
		return nil, end, err
	}
	target := &url.URL{Scheme: "http", Host: upstream}
	plain, err := serve(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	})
	if err != nil {
		end()
		return nil, end, err
	}
	addr, stop, err := startGateway(ctx, upstream, redisAddr)
	if err != nil {
		end()
		return nil, end, err
	}
	ends = append(ends, stop)
	head := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: bench\r\nX-Api-Key: bench\r\nUser-Agent: bench\r\n\r\n"
	}
	return []front{
		{plainFront, plain, head("/limited/1")}, {openFront, addr, head("/open/1")}, {limitedFront, addr, head("/limited/1")},
	}, end, nil
}

const gatewayConfig = `
region: eu
identity: {mode: header}
upstreams: {u: {targets: [{url: "http://%s"}]}}
routes:
  - {id: limited, path: "/limited/{id}", upstream: u}
  - {id: open, path: "/open/{id}", upstream: u, unlimited: true}
redis: {addresses: ["%s"]}
rules: {file: %q}
decision: {deadline: 100ms}
telemetry: {log_level: error}
`

const gatewayRules = `
revision: 1
regions: {eu: 100%}
rules:
  - {tenant: "*", route: limited, capacity: 1000000, refill_per_second: 1000000}
`

// startGateway runs the shipped gateway in this process.
func startGateway(ctx context.Context, upstream, redisAddr string) (addr string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "partidor-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("make a directory for rules: %w", err)
	}
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte(gatewayRules), 0o600); err != nil {
		return "", nil, fmt.Errorf("write rules: %w", err)
	}
	var listeners [2]net.Listener
	for i := range listeners {
		if listeners[i], err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return "", nil, fmt.Errorf("listen: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done, serving := make(chan error, 1), make(chan struct{})
	go func() {
		done <- gateway.Run(ctx, gateway.Options{
			Config: fmt.Appendf(nil, gatewayConfig, upstream, redisAddr, rules), Listener: listeners[0], AdminListener: listeners[1],
			Serving: func(net.Addr, net.Addr) { close(serving) },
		})
	}()
	stop = func() {
		cancel()
		<-done //nolint:errcheck // why it ended is no news: it was asked to
		_ = os.RemoveAll(dir)
	}
	select {
	case <-serving:
		return listeners[0].Addr().String(), stop, nil
	case err := <-done:
		cancel()
		_ = os.RemoveAll(dir)
		return "", nil, fmt.Errorf("run gateway: %w", err)
	}
}

func measureFront(ctx context.Context, f front, callers int, d time.Duration) (proxySample, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := processCPU(), time.Now()
	waits, err := ask(ctx, f, callers, d)
	if err != nil {
		return proxySample{}, err
	}
	took, spent := time.Since(began), processCPU()-cpu
	runtime.ReadMemStats(&after)
	n := float64(waits.TotalCount())
	return proxySample{
		Requests: waits.TotalCount(), PerSecond: n / took.Seconds(),
		P50: time.Duration(waits.ValueAtQuantile(50)), P99: time.Duration(waits.ValueAtQuantile(99)),
		CPU: spent.Seconds() * 1e6 / n, Allocs: float64(after.Mallocs-before.Mallocs) / n,
	}, nil
}
