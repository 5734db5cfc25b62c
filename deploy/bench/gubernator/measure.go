package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	guber "github.com/gubernator-io/gubernator/v2"
)

// The limit of the bench: so large that nothing is refused within a run.
const (
	burst     = 1_000_000
	perSecond = 100_000
)

// load is the bench's.
type load struct {
	keys, callers int
	round         time.Duration
}

type asker func(context.Context, *guber.GetRateLimitsReq) (*guber.GetRateLimitsResp, error)

// measure warms up for a tenth of a round, then asks for a round.
func (l load) measure(ctx context.Context, ask asker, cpu func() time.Duration) (sample, error) {
	if _, err := l.drive(ctx, ask, l.round/10); err != nil {
		return sample{}, err
	}
	spent, began := cpu(), time.Now()
	all, err := l.drive(ctx, ask, l.round)
	if err != nil {
		return sample{}, err
	}
	took, n := time.Since(began), float64(all.TotalCount())
	return sample{
		Decisions: all.TotalCount(), PerSecond: n / took.Seconds(),
		P50: time.Duration(all.ValueAtQuantile(50)), P99: time.Duration(all.ValueAtQuantile(99)),
		ClientCPU: (cpu() - spent).Seconds() * 1e6 / n,
	}, nil
}

func (l load) drive(ctx context.Context, ask asker, d time.Duration) (*hdrhistogram.Histogram, error) {
	all := hdrhistogram.New(100, int64(time.Minute), 3)
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	stop := time.Now().Add(d)
	for c := range l.callers {
		wg.Go(func() {
			waits, err := l.caller(ctx, ask, c, stop)
			mu.Lock()
			defer mu.Unlock()
			all.Merge(waits)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return all, failed
}

func (l load) caller(ctx context.Context, ask asker, c int, stop time.Time) (*hdrhistogram.Histogram, error) {
	waits, random := hdrhistogram.New(100, int64(time.Minute), 3), rand.New(rand.NewPCG(uint64(c), 1))
	for began := time.Now(); began.Before(stop); {
		r, err := ask(ctx, &guber.GetRateLimitsReq{Requests: []*guber.RateLimitReq{{
			Name: "create-order", UniqueKey: "tenant-" + strconv.Itoa(random.IntN(l.keys)), Hits: 1,
			Limit: burst, Duration: burst / perSecond * 1000, Burst: burst, Algorithm: guber.Algorithm_LEAKY_BUCKET,
		}}})
		switch {
		case err != nil:
			return waits, err
		case r.Responses[0].Error != "":
			return waits, errors.New(r.Responses[0].Error)
		case r.Responses[0].Status != guber.Status_UNDER_LIMIT:
			return waits, errors.New("refused although there was room")
		}
		now := time.Now()
		_ = waits.RecordValue(max(100, int64(now.Sub(began))))
		began = now
	}
	return waits, nil
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ticksPerSecond is what Linux counts processor time of other processes in.
const ticksPerSecond = 100

// processCPU is what another process has used, 0 where the system does not tell.
func processCPU(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	const user, system = 11, 12 // counted from the state that follows the name
	var ticks int64
	for i, field := range bytes.Fields(after) {
		if i == user || i == system {
			n, _ := strconv.ParseInt(string(field), 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond)
}
