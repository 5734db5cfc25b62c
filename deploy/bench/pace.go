package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// pacedResult is one front under a rate that does not wait for it. Waits count from when a request was due, not from when it
// could be sent, so that an answer that comes late shows in all requests behind it (no coordinated omission).
type pacedResult struct {
	Front string `json:"front"`
	// Load is the rate as a part of what the limited gateway carries at most.
	Load      float64       `json:"load"`
	PerSecond float64       `json:"per_second"`
	Requests  int64         `json:"requests"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	P999      time.Duration `json:"p999_ns"`
	// Ping is the 99th percentile of a round trip to Redis meanwhile.
	Ping time.Duration `json:"ping_p99_ns"`
}

// runPace measures what the limiter adds at a quarter, a half and three quarters of saturation.
func runPace(ctx context.Context, o options, r *report) error {
	return withFronts(ctx, func(s *server, fronts []front) error { return paceFronts(ctx, o, r, s, fronts[:3]) })
}

func paceFronts(ctx context.Context, o options, r *report, s *server, fronts []front) error {
	full, err := competeFronts(ctx, o, fronts[2:])
	if err != nil {
		return err
	}
	for _, part := range []float64{0.25, 0.5, 0.75} {
		rate := full[0].PerSecond * part
		waits := make([]*hdrhistogram.Histogram, len(fronts))
		pings := make([]*hdrhistogram.Histogram, len(fronts))
		for i := range waits {
			waits[i], pings[i] = hdrhistogram.New(1000, int64(time.Minute), 3), hdrhistogram.New(1000, int64(time.Minute), 3)
		}
		for round := range o.rounds {
			for i, f := range fronts {
				progress("%.0f requests/s, round %d: %s", rate, round+1, f.name)
				if err := pace(ctx, f, o.callers, rate, o.round*4/3, waits[i], pings[i], s); err != nil {
					return fmt.Errorf("pace %s: %w", f.name, err)
				}
			}
		}
		for i, f := range fronts {
			h := waits[i]
			r.Paced = append(r.Paced, pacedResult{
				Front: f.name, Load: part, PerSecond: rate, Requests: h.TotalCount(), P50: time.Duration(h.ValueAtQuantile(50)),
				P99: time.Duration(h.ValueAtQuantile(99)), P999: time.Duration(h.ValueAtQuantile(99.9)),
				Ping: time.Duration(pings[i].ValueAtQuantile(99)),
			})
		}
	}
	return nil
}

// pace sends rate requests per second for d, a Poisson process spread over so many connections.
func pace(ctx context.Context, f front, callers int, rate float64, d time.Duration, waits, pings *hdrhistogram.Histogram, s *server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pinger sync.WaitGroup
	start := time.Now()
	pinger.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if s.ctl.Ping(ctx).Err() == nil {
				_ = pings.RecordValue(max(1000, int64(time.Since(began))))
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	all, err := together(callers, func(i int) (*hdrhistogram.Histogram, error) {
		return sender(ctx, f, i, rate/float64(callers), start, d)
	})
	waits.Merge(all)
	cancel()
	pinger.Wait()
	return err
}

func sender(ctx context.Context, f front, i int, rate float64, start time.Time, d time.Duration) (*hdrhistogram.Histogram, error) {
	waits := hdrhistogram.New(1000, int64(time.Minute), 3)
	c, err := dial(ctx, f, i)
	if err != nil {
		return waits, err
	}
	defer c.close()
	random := rand.New(rand.NewPCG(uint64(i), uint64(start.UnixNano())))
	for due := time.Duration(random.ExpFloat64() / rate * 1e9); due < d && ctx.Err() == nil; due += time.Duration(random.ExpFloat64() / rate * 1e9) {
		time.Sleep(due - time.Since(start))
		if err := c.exchange(); err != nil {
			return waits, err
		}
		_ = waits.RecordValue(max(1000, int64(time.Since(start)-due)))
	}
	return waits, nil
}
