// Package load sends HTTP requests as independent clients do: at the rate it is told, whether or not the answers keep up.
package load

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// tick is how often due requests are sent. Arrivals within one tick go out together, as those of many clients do.
const tick = 2 * time.Millisecond

// Source is one stream of requests.
type Source struct {
	// Request is called for each arrival and returns what to send.
	Request func(ctx context.Context) (*http.Request, error)
	// Rate is requests per second at a time since start. It may be 0 for a while.
	Rate func(elapsed time.Duration) float64
	// Seed makes the arrivals, a Poisson process, repeatable.
	Seed uint64
	// InFlight bounds the requests without an answer; arrivals beyond it are answered with Shed. Default 1000.
	InFlight int
}

// Result is what became of one request.
type Result struct {
	// Status is the answer's, 0 if there was none.
	Status int
	Header http.Header
	Body   []byte
	Err    error
	// Sent and Received are times since start.
	Sent, Received time.Duration
	// Shed marks an arrival that was never sent.
	Shed bool
}

// Client fits load from one process: connections are kept, answers come as they are.
func Client(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Run sends until ctx ends, then waits for the answers. each is called for every arrival, from many goroutines. All times
// it speaks of are since start, so that several sources can share one clock.
func Run(ctx context.Context, client *http.Client, start time.Time, s Source, each func(Result)) {
	arrivals := rand.New(rand.NewPCG(s.Seed, 1))
	if s.InFlight == 0 {
		s.InFlight = 1000
	}
	slots := make(chan struct{}, s.InFlight)
	var sent sync.WaitGroup
	defer sent.Wait()
	timer := time.NewTicker(tick)
	defer timer.Stop()
	due := arrivals.ExpFloat64() // work left until the next arrival, in units of 1 ÷ rate
	last := time.Since(start)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Since(start)
		for due -= s.Rate(now) * (now - last).Seconds(); due <= 0; due += arrivals.ExpFloat64() {
			select {
			case slots <- struct{}{}:
				sent.Go(func() {
					defer func() { <-slots }()
					each(do(context.WithoutCancel(ctx), client, s, start))
				})
			default:
				each(Result{Sent: now, Received: now, Shed: true})
			}
		}
		last = now
	}
}

func do(ctx context.Context, client *http.Client, s Source, start time.Time) (r Result) {
	req, err := s.Request(ctx)
	if err != nil {
		return Result{Err: err}
	}
	r.Sent = time.Since(start)
	resp, err := client.Do(req)
	if err == nil {
		r.Status, r.Header = resp.StatusCode, resp.Header
		r.Body, err = io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		resp.Body.Close()
	}
	r.Received, r.Err = time.Since(start), err
	return r
}
