package life

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/lua"
)

// sourceKey names the record of lua/source.lua, one for the region: in a cluster it lies in one of the slots.
const sourceKey = "rl:@source"

// SourceOptions of a Source; Name, Ready and Tell are needed.
type SourceOptions struct {
	// Name is the same for all gateways that have the same source.
	Name string
	// Ready tells that the rules in force come from this source: not from what an earlier one has left behind.
	Ready func() bool
	// Tell is told of the generation to go by, at first and when it changes.
	Tell   func(generation int64)
	Logger *slog.Logger
}

// Source finds out which generation of sources of rules this gateway's rules belong to. Revisions order the words of one source;
// between two, the one that a gateway has begun to use later wins, so that going from a ledger to a file, from a file to a ledger
// or to another ledger takes effect at once.
type Source struct {
	o          SourceOptions
	script     *redis.Script
	generation atomic.Int64
}

// unknown generation: Redis has not been asked yet.
const unknown = -1

// NewSource is one that Redis has not been asked about.
func NewSource(o SourceOptions) *Source {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Source{o: o, script: redis.NewScript(lua.Source)}
	s.generation.Store(unknown)
	return s
}

// sourceEvery is after how many looks a record that is known is looked at again.
const sourceEvery = 5

// Run asks once a second until there is an answer, then every few seconds, until ctx ends.
func (s *Source) Run(ctx context.Context, client redis.UniversalClient) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if s.generation.Load() == unknown || looks%sourceEvery == 0 {
				_ = s.Look(ctx, client) // a Redis that is away is the breaker's to tell
			}
		}
	}
}

// Look asks once.
func (s *Source) Look(ctx context.Context, client redis.UniversalClient) error {
	if !s.o.Ready() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	known := s.generation.Load()
	next, err := s.script.Run(ctx, client, []string{sourceKey}, s.o.Name, strconv.FormatInt(known, 10)).Int64()
	if err != nil {
		return fmt.Errorf("compare the source of the rules: %w", err)
	}
	if next == known {
		return nil
	}
	s.generation.Store(next)
	s.o.Tell(next)
	if next > 0 {
		s.o.Logger.InfoContext(ctx, "the rules of this source take the place of another's", "source", s.o.Name, "generation", next)
	}
	return nil
}
