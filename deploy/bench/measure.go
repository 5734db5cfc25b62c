package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

var errRefused = errors.New("refused although there was room")

// load is one way to ask: so many distinct keys, so many callers that each ask again as soon as they are answered.
type load struct {
	Keys    int    `json:"keys"`
	Callers int    `json:"callers"`
	Shape   string `json:"shape,omitempty"`
}

// The shapes of a load besides the plain one, every key as often as any other and nothing refused.
const (
	zipf      = "zipf"      // the first keys have most of the requests
	refusing  = "refusing"  // every tenth key has a limit that is soon used up
	clustered = "clustered" // on a Redis Cluster
)

// usedUp tells whether key i is one that is refused.
func (l load) usedUp(i int) bool { return l.Shape == refusing && i%10 == 0 }

// picker gives a caller its keys, in an order of its own.
func (l load) picker(caller int) func() int {
	random := rand.New(rand.NewPCG(uint64(caller), 1))
	if l.Shape == zipf {
		z := rand.NewZipf(random, 1.1, 1, uint64(l.Keys-1))
		return func() int { return int(z.Uint64()) }
	}
	return func() int { return random.IntN(l.Keys) }
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
	Refused    float64       `json:"refused"`       // of all decisions
}

func measure(ctx context.Context, s *server, sub subject, l load, round time.Duration) (sample, error) {
	if err := s.flush(ctx); err != nil {
		return sample{}, err
	}
	decide, end, err := sub.begin(s, l)
	if err != nil {
		return sample{}, err
	}
	defer end()
	if _, err := drive(ctx, decide, l, round/10, nil); err != nil { // connections, script cache
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
	refused, err := drive(ctx, decide, l, round, waits)
	if err != nil {
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
		Refused:    float64(refused) / n,
	}, nil
}

// drive runs the callers for d and counts refusals. waits may be nil.
func drive(ctx context.Context, decide decider, l load, d time.Duration, waits []*hdrhistogram.Histogram) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var refused atomic.Int64
	var wg sync.WaitGroup
	stop := time.Now().Add(d)
	for c := range l.Callers {
		wg.Go(func() {
			pick, count := l.picker(c), int64(0)
			defer func() { refused.Add(count) }()
			for began := time.Now(); began.Before(stop) && ctx.Err() == nil; {
				key := pick()
				allowed, err := decide(ctx, key)
				if err == nil && !allowed {
					count++
					if !l.usedUp(key) {
						err = errRefused
					}
				}
				if err != nil {
					cancel(err)
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
	return refused.Load(), context.Cause(ctx)
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
