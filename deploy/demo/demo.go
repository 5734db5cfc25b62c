package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// options are the command line's.
type options struct {
	duration, cycle, swing time.Duration
	json                   bool
	scale                  float64
	seed                   uint64
	console, logs          string
	// soak is the time between faults, 0 for a demo without any; plot takes the picture of a soak.
	soak time.Duration
	plot string
}

// demonstrate runs the world, its traffic and the view of both until ctx or the demo's time ends. A soak in which something grew
// has both a summary and an error.
func demonstrate(ctx context.Context, o options, out io.Writer) (*summary, error) {
	dir, err := os.MkdirTemp("", "partidor-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover of a few bytes

	// The traffic ends before the world does: no request is cut, and the last look at the buckets sees them.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	work, life := errgroup.WithContext(life)
	s, err := play(ctx, life, work, dir, o, out)
	end()
	if cause := work.Wait(); cause != nil { // what failed in the background is why the rest was given up
		return nil, cause
	}
	return s, err
}

// play starts the world on work, within life, and sends it traffic until ctx, the demo's time or life ends.
func play(ctx, life context.Context, work *errgroup.Group, dir string, o options, out io.Writer) (*summary, error) {
	tenants := scaled(tenants, o.scale)
	if o.soak > 0 {
		tenants = soaked(tenants)
	}
	w, err := startWorld(life, work, dir, tenants, o)
	if err != nil {
		return nil, err
	}
	visit, leave := context.WithCancel(life)
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	if o.duration > 0 {
		defer time.AfterFunc(o.duration, leave).Stop()
	}
	traffic, sent := startTraffic(visit, w, tenants, o)
	endurance := &soak{every: o.soak}
	switch {
	case o.soak > 0:
		err = endurance.run(visit, w, traffic)
	case !o.json:
		err = watch(visit, out, w, traffic)
	}
	sent.Wait()
	s := traffic.summary(w)
	if o.soak > 0 && err == nil {
		s.Faults, s.Samples = endurance.faults, endurance.samples
		err = endurance.verdict()
		if o.plot != "" && len(s.Samples) > 0 {
			err = errors.Join(err, endurance.plot(o.plot))
		}
	}
	return s, err
}
