package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

var errRefused = errors.New("refused although there was room")

// load is one way to ask: so many distinct keys, so many callers that each ask again as soon as they are answered.
type load struct {
	Keys    int `json:"keys"`
	Callers int `json:"callers"`
}

// sample is what one round of one subject gave.
type sample struct {
	Decisions  int64         `json:"decisions"`
	PerSecond  float64       `json:"per_second"`
	P50        time.Duration `json:"p50_ns"`
	P99        time.Duration `json:"p99_ns"`
	ClientCPU  float64       `json:"client_cpu_us"` // per decision, this process
	RedisCPU   float64       `json:"redis_cpu_us"`  // per decision, the server
	RedisCalls float64       `json:"redis_calls"`   // per decision
}

func measure(ctx context.Context, s *server, sub subject, l load, round time.Duration) (sample, error) {
	if err := s.ctl.FlushAll(ctx).Err(); err != nil {
		return sample{}, fmt.Errorf("empty redis: %w", err)
	}
	decide, end, err := sub.begin(s.addr, l.Keys, l.Callers)
	if err != nil {
		return sample{}, err
	}
	defer end()
	if err := drive(ctx, decide, l, round/10, nil); err != nil { // connections, script cache
		return sample{}, fmt.Errorf("warm %s: %w", sub.name, err)
	}
	before, err := s.read(ctx)
	if err != nil {
		return sample{}, err
	}
	cpu, began := processCPU(), time.Now()
	waits := make([]*hdrhistogram.Histogram, l.Callers)
	for i := range waits {
		waits[i] = hdrhistogram.New(100, int64(time.Minute), 3)
	}
	if err := drive(ctx, decide, l, round, waits); err != nil {
		return sample{}, fmt.Errorf("measure %s: %w", sub.name, err)
	}
	took, spent := time.Since(began), processCPU()-cpu
	after, err := s.read(ctx)
	if err != nil {
		return sample{}, err
	}
	all := waits[0]
	for _, w := range waits[1:] {
		all.Merge(w)
	}
	n := float64(all.TotalCount())
	return sample{
		Decisions: all.TotalCount(), PerSecond: n / took.Seconds(),
		P50: time.Duration(all.ValueAtQuantile(50)), P99: time.Duration(all.ValueAtQuantile(99)),
		ClientCPU:  spent.Seconds() * 1e6 / n,
		RedisCPU:   (after.cpu - before.cpu).Seconds() * 1e6 / n,
		RedisCalls: (after.calls - before.calls) / n,
	}, nil
}

// drive runs the callers for d. Every caller walks the keys in an order of its own. waits may be nil.
func drive(ctx context.Context, decide func(context.Context, int) error, l load, d time.Duration, waits []*hdrhistogram.Histogram) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	stop := time.Now().Add(d)
	for c := range l.Callers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(c), 1))
			for began := time.Now(); began.Before(stop) && ctx.Err() == nil; {
				if err := decide(ctx, random.IntN(l.Keys)); err != nil {
					once.Do(func() { failed = err; cancel() })
					return
				}
				now := time.Now()
				if waits != nil {
					_ = waits[c].RecordValue(max(100, int64(now.Sub(began))))
				}
				began = now
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	return ctx.Err()
}

// median picks the round with the middle rate, whole, so that its figures belong together.
func median(rounds []sample) sample {
	s := slices.Clone(rounds)
	slices.SortFunc(s, func(a, b sample) int {
		switch {
		case a.PerSecond < b.PerSecond:
			return -1
		case a.PerSecond > b.PerSecond:
			return 1
		}
		return 0
	})
	return s[len(s)/2]
}

func processCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
