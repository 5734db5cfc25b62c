package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	gateway "partidor.dev/partidor/gateway/app"
)

// front is one way to an upstream: addresses, which callers spread over, the head that callers send, and the answer they
// must get. redis is the server it asks, nil for none.
type front struct {
	name    string
	addrs   []string
	request string
	status  string
	redis   *server
}

type proxyResult struct {
	Front   string `json:"front"`
	Callers int    `json:"callers"`
	proxySample
}

// proxySample is what one round of one front gave. CPU and allocations are of the whole process per request: callers,
// front and upstream; only their differences between fronts mean something.
type proxySample struct {
	Requests   int64         `json:"requests"`
	PerSecond  float64       `json:"per_second"`
	P50        time.Duration `json:"p50_ns"`
	P99        time.Duration `json:"p99_ns"`
	CPU        float64       `json:"cpu_us"`
	Allocs     float64       `json:"allocs"`
	RedisCPU   float64       `json:"redis_cpu_us"`
	RedisCalls float64       `json:"redis_calls"`
}

// runProxies measures the gateway with its limiter, without it, with tokens taken ahead, refusing, without Redis, and a plain
// httputil.ReverseProxy: one upstream, one load, rounds that take turns.
func runProxies(ctx context.Context, o options, r *report) error {
	return withFronts(ctx, func(_ *server, fronts []front) (err error) {
		r.Proxies, err = competeFronts(ctx, o, fronts)
		return err
	})
}

// withFronts starts a Redis and all fronts for do.
func withFronts(ctx context.Context, do func(*server, []front) error) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	fronts, end, err := startFronts(ctx, s)
	if err != nil {
		return err
	}
	defer end()
	return do(s, fronts)
}

// competeFronts measures fronts in rounds that take turns; the median round counts.
func competeFronts(ctx context.Context, o options, fronts []front) (results []proxyResult, err error) {
	samples := map[string][]proxySample{}
	for i := range o.rounds {
		for _, f := range fronts {
			progress("%d callers, round %d: %s", o.callers, i+1, f.name)
			if _, err := ask(ctx, f, o.callers, o.round/5); err != nil {
				return nil, fmt.Errorf("warm %s: %w", f.name, err)
			}
			x, err := measureFront(ctx, f, o.callers, o.round)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", f.name, err)
			}
			samples[f.name] = append(samples[f.name], x)
		}
	}
	for _, f := range fronts {
		results = append(results, proxyResult{f.name, o.callers, medianFront(samples[f.name])})
	}
	return results, nil
}

const (
	plainFront    = "httputil.ReverseProxy"
	openFront     = "gateway, unlimited route"
	limitedFront  = "gateway, limited"
	aheadFront    = "gateway, limited, tokens taken ahead"
	refusedFront  = "gateway, refused"
	fallbackFront = "gateway, limited, Redis away"
)

// startFronts starts the upstream and everything in front of it.
func startFronts(ctx context.Context, redis *server) (fronts []front, end func(), err error) {
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
	upstream, err := serve(http.HandlerFunc(answer))
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
	addr, stop, err := startGateway(ctx, upstream, redis.addr)
	if err != nil {
		end()
		return nil, end, err
	}
	ends = append(ends, stop)
	if first, err := dial(ctx, front{addrs: []string{addr}, request: head("/refused/1"), status: okStatus}, 0); err == nil {
		_ = first.exchange() // the one token that there is
		first.close()
	}
	alone, stop, err := startAlone(ctx, upstream)
	if err != nil {
		end()
		return nil, end, err
	}
	ends = append(ends, stop)
	return []front{
		{plainFront, []string{plain}, head("/limited/1"), okStatus, nil},
		{openFront, []string{addr}, head("/open/1"), okStatus, redis},
		{limitedFront, []string{addr}, head("/limited/1"), okStatus, redis},
		{aheadFront, []string{addr}, head("/ahead/1"), okStatus, redis},
		{refusedFront, []string{addr}, head("/refused/1"), "HTTP/1.1 429 ", redis},
		{fallbackFront, []string{alone}, head("/limited/1"), okStatus, nil},
	}, end, nil
}

const okStatus = "HTTP/1.1 200 "

func head(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: bench\r\nX-Api-Key: bench\r\nUser-Agent: bench\r\n\r\n"
}

// startAlone starts a gateway and takes its Redis away.
func startAlone(ctx context.Context, upstream string) (addr string, stop func(), err error) {
	s, err := startServer(ctx)
	if err != nil {
		return "", nil, err
	}
	defer s.stop()
	return startGateway(ctx, upstream, s.addr)
}

const gatewayConfig = `
region: eu
identity: {mode: header}
upstreams: {u: {targets: [{url: "http://%s"}]}}
routes:
  - {id: limited, path: "/limited/{id}", upstream: u}
  - {id: open, path: "/open/{id}", upstream: u, unlimited: true}
  - {id: ahead, path: "/ahead/{id}", upstream: u}
  - {id: refused, path: "/refused/{id}", upstream: u}
redis: {addresses: ["%s"]}
rules: {file: %q}
decision: {deadline: 1s}
telemetry: {log_level: error}
`

const gatewayRules = `
revision: 1
regions: {eu: 100%}
rules:
  - {tenant: "*", route: limited, capacity: 1000000, refill_per_second: 1000000}
  - {tenant: "*", route: ahead, capacity: 1000000, refill_per_second: 1000000, prefetch: true}
  - {tenant: "*", route: refused, capacity: 1, refill_per_second: 1, refill_period_seconds: 315576000}
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
	var asked, answered reading
	var err error
	if f.redis != nil {
		if asked, err = f.redis.read(ctx); err != nil {
			return proxySample{}, err
		}
	}
	runtime.ReadMemStats(&before)
	cpu, began := processCPU(), time.Now()
	waits, err := ask(ctx, f, callers, d)
	if err != nil {
		return proxySample{}, err
	}
	took, spent := time.Since(began), processCPU()-cpu
	runtime.ReadMemStats(&after)
	if f.redis != nil {
		if answered, err = f.redis.read(ctx); err != nil {
			return proxySample{}, err
		}
	}
	n := float64(waits.TotalCount())
	return proxySample{
		Requests: waits.TotalCount(), PerSecond: n / took.Seconds(),
		P50: time.Duration(waits.ValueAtQuantile(50)), P99: time.Duration(waits.ValueAtQuantile(99)),
		CPU: spent.Seconds() * 1e6 / n, Allocs: float64(after.Mallocs-before.Mallocs) / n,
		RedisCPU: (answered.cpu - asked.cpu).Seconds() * 1e6 / n, RedisCalls: (answered.calls - asked.calls) / n,
	}, nil
}

// medianFront picks the round with the middle rate, whole.
func medianFront(rounds []proxySample) proxySample {
	s := slices.Clone(rounds)
	slices.SortFunc(s, func(a, b proxySample) int { return cmp.Compare(a.PerSecond, b.PerSecond) })
	return s[len(s)/2]
}
