package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// soak keeps a world under load and faults, and looks whether it grows.
type soak struct {
	// every is the time from one fault to the next; a fault lasts a twelfth of that, and as often the world is looked at.
	every   time.Duration
	start   time.Time
	samples []soakSample
	faults  []soakFault
}

// soakSample is the world at one time.
type soakSample struct {
	Seconds    float64 `json:"seconds"`
	HeapMB     float64 `json:"heap_mb"` // in use at the last collection
	Goroutines float64 `json:"goroutines"`
	Sockets    float64 `json:"sockets"`
	Keys       float64 `json:"redis_keys"`
	PerSecond  float64 `json:"admitted_per_second"`
	// Shares is the largest sum of all regions' shares of one key, in parts per million. What is on its way is in no region, so
	// that it is at most the whole.
	Shares limit.Share `json:"shares"`

	admitted int64
}

// soakFault is one thing that went wrong.
type soakFault struct {
	Seconds float64 `json:"seconds"`
	What    string  `json:"what"`
}

// soaked are tenants whose limits are never guarded by less than Redis: while it is away they are refused, so that any excess at
// all is a fault of the limiter.
func soaked(in []tenant) []tenant {
	out := slices.Clone(in)
	for i := range out {
		out[i].onError = limit.OnErrorDeny
	}
	return out
}

// run breaks something every so often until ctx ends, and heals it at the end.
func (s *soak) run(ctx context.Context, w *world, t *traffic) error {
	s.start = time.Now()
	tick := time.NewTicker(s.every / 12)
	defer tick.Stop()
	var heal func() error
	for next := s.every; ; {
		select {
		case <-ctx.Done():
			if heal != nil {
				return heal()
			}
			return nil
		case <-tick.C:
		}
		if heal != nil {
			if err := heal(); err != nil {
				return err
			}
			heal = nil
		}
		s.look(w, t)
		if at := time.Since(s.start); at >= next {
			next += s.every
			f := faults[len(s.faults)%len(faults)]
			s.faults = append(s.faults, soakFault{at.Seconds(), f.what})
			heal = f.strike(w)
		}
	}
}

// nowhere is an address at which nobody answers.
const nowhere = "127.0.0.1:1"

// faults take turns. strike breaks something and returns what heals it.
var faults = []struct {
	what   string
	strike func(w *world) (heal func() error)
}{
	{"eu's Redis answers errors", func(w *world) func() error {
		w.regions[0].redis.SetError("LOADING the soak test is loading")
		return func() error { w.regions[0].redis.SetError(""); return nil }
	}},
	{"us's Redis is away", func(w *world) func() error {
		us := w.regions[1]
		us.link.Turn(nowhere)
		return func() error { us.link.Turn(us.redis.Addr()); return nil }
	}},
	{"eu's Redis drops its connections", func(w *world) func() error {
		eu := w.regions[0]
		eu.link.Turn(eu.redis.Addr())
		return func() error { return nil }
	}},
}

// look takes a sample.
func (s *soak) look(w *world, t *traffic) {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(heap)
	x := soakSample{
		Seconds: time.Since(s.start).Seconds(), HeapMB: float64(heap[0].Value.Uint64()) / 1e6,
		Goroutines: float64(runtime.NumGoroutine()), Sockets: sockets(),
	}
	for _, r := range w.regions {
		x.Keys += float64(len(r.redis.Keys()))
	}
	for _, a := range t.accounts {
		_, admitted, _, _ := a.whole()
		x.admitted += admitted
		x.Shares = max(x.Shares, a.inForce(w))
	}
	var last soakSample
	if n := len(s.samples); n > 0 {
		last = s.samples[n-1]
	}
	x.PerSecond = float64(x.admitted-last.admitted) / (x.Seconds - last.Seconds)
	s.samples = append(s.samples, x)
}

// sockets is how many this process has open, 0 where the system does not tell.
func sockets() (n float64) {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return 0
	}
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// series are what must stay flat. The slack is what comes and goes with requests under way.
var series = []struct {
	name  string
	slack float64
	of    func(soakSample) float64
}{
	{"heap, MB", 16, func(x soakSample) float64 { return x.HeapMB }},
	{"goroutines", 200, func(x soakSample) float64 { return x.Goroutines }},
	{"sockets", 100, func(x soakSample) float64 { return x.Sockets }},
	{"keys in Redis", 8, func(x soakSample) float64 { return x.Keys }},
}

// verdict tells whether shares were ever more than the whole, and what grew: the last third of the samples lies above the second by more than a quarter and the slack. The first
// third is the start, in which caches and pools fill.
func (s *soak) verdict() error {
	n := len(s.samples)
	if n < 6 {
		return fmt.Errorf("soak: %d samples tell nothing, at least 6 are needed", n)
	}
	if len(s.faults) == 0 {
		return errors.New("soak: ended before the first fault")
	}
	var grew []error
	for _, x := range s.samples {
		if x.Shares > limit.Whole {
			grew = append(grew, fmt.Errorf("soak: after %.0f s the shares of one key added up to %v %%", x.Seconds, x.Shares.Percent()))
			break
		}
	}
	for _, v := range series {
		before, after := middle(s.samples[n/3:2*n/3], v.of), middle(s.samples[2*n/3:], v.of)
		if after > before*1.25+v.slack {
			grew = append(grew, fmt.Errorf("soak: %s grew from %.1f to %.1f", v.name, before, after))
		}
	}
	return errors.Join(grew...)
}

func middle(samples []soakSample, of func(soakSample) float64) float64 {
	var all []float64
	for _, x := range samples {
		all = append(all, of(x))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
