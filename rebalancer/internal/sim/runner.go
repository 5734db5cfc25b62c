package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"partidor.dev/partidor/shared/rights/agent"
)

// Strategies by name. Slow is partidor without its fast loop.
const (
	NameStatic       = "static"
	NameProportional = "proportional"
	NameSlow         = "slow"
	NamePartidor     = "partidor"
)

// StrategyNames in the order of reports.
func StrategyNames() []string { return []string{NameStatic, NameProportional, NameSlow, NamePartidor} }

func newStrategy(name string) (Strategy, error) {
	switch name {
	case NameStatic:
		return &Static{}, nil
	case NameProportional:
		return &Proportional{}, nil
	case NameSlow:
		policy := agent.DefaultPolicy()
		policy.FastLoop = false
		return &Partidor{policy: policy}, nil
	case NamePartidor:
		return &Partidor{policy: agent.DefaultPolicy()}, nil
	}
	return nil, fmt.Errorf("strategy %q, must be one of %q", name, StrategyNames())
}

// Job is what to simulate.
type Job struct {
	Scenarios  []Scenario
	Strategies []string
	Seeds      []uint64
	// Plots records the first seed of each scenario for plots.
	Plots bool
	// Parallel runs at once, by default one per processor. The result does not depend on it.
	Parallel int
	// Progress, if set, is told after each run how many of all are done. It is called from several goroutines, one at a
	// time.
	Progress func(done, all int)
}

// Result is one scenario under one strategy with one seed.
type Result struct {
	Scenario string   `json:"scenario"`
	Strategy string   `json:"strategy"`
	Seed     uint64   `json:"seed"`
	Outcome  Outcome  `json:"outcome"`
	Samples  []Sample `json:"-"`
}

// Run plays every scenario under every strategy with every seed. Results come in that order, whatever ran first.
func (j Job) Run(ctx context.Context) ([]Result, error) {
	var results []Result
	for _, s := range j.Scenarios {
		for _, name := range j.Strategies {
			if _, err := newStrategy(name); err != nil {
				return nil, err
			}
			for _, seed := range j.Seeds {
				results = append(results, Result{Scenario: s.Name, Strategy: name, Seed: seed})
			}
		}
	}
	parallel := j.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	var mu sync.Mutex
	done := 0
	for i := range results {
		r := &results[i]
		s := &j.Scenarios[slices.IndexFunc(j.Scenarios, func(s Scenario) bool { return s.Name == r.Scenario })]
		plot := j.Plots && r.Seed == j.Seeds[0]
		g.Go(func() error {
			if err := play(ctx, s, r, plot); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; j.Progress != nil {
				j.Progress(done, len(results))
			}
			return nil
		})
	}
	return results, g.Wait()
}

// play runs one result's scenario: one key, or all of its keys one after the other.
func play(ctx context.Context, s *Scenario, r *Result, plot bool) error {
	keys := []Scenario{*s}
	if s.Keys != nil {
		keys = s.Keys(r.Seed)
	}
	for i := range keys {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		strategy, err := newStrategy(r.Strategy)
		if err != nil {
			return err
		}
		var rec *recorder
		if plot && s.Keys == nil {
			rec = newRecorder(&keys[i])
		}
		seed := r.Seed
		if s.Keys != nil {
			seed = r.Seed*uint64(len(keys)) + uint64(i)
		}
		r.Outcome = r.Outcome.add(run(&keys[i], seed, strategy, rec))
		if rec != nil {
			r.Samples = rec.Samples
		}
	}
	return nil
}
