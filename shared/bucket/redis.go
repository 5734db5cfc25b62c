package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
)

// Errors of a Redis store that callers tell apart. Everything else that Take returns is an error of Redis or of the way to it.
var (
	// ErrBusy: more decisions are waiting than the store holds; nothing was sent.
	ErrBusy = errors.New("too many decisions are waiting for redis")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("bucket store is closed")
)

// Options of a Redis store; zero fields mean the defaults.
type Options struct {
	// Client as made by package redisconn: it never repeats a command by itself.
	Client redis.UniversalClient
	// Workers is how many script calls may be under way per node at once (default 2: more only makes smaller batches); BatchSize how many decisions one
	// call carries at most (64); Queue how many may wait per node (4096).
	Workers, BatchSize, Queue int
	// CallTimeout bounds one script call, well above the callers' own deadlines: a caller that gives up closes no
	// connection, a call that exceeds this does (default 500 ms).
	CallTimeout time.Duration
	// LossHorizon: buckets that take longer to fill start full even after a data loss (default 10 min).
	LossHorizon time.Duration
	// Found is told of broken buckets and lost rights, from the goroutine of the decision; it must not block.
	Found func(Finding)
	// Called is told of every script call that came back, from the goroutine of a worker: how many decisions it carried, how
	// long it took, and its error.
	Called func(decisions int, took time.Duration, err error)
	// Script replaces lua.Take, for tests that bring their own clock.
	Script string
}

// Redis decides in the regional Redis. Concurrent decisions travel together: many buckets per script call, a few calls under
// way per node. Safe for concurrent use; Close it when done.
//
// What the way to Redis can do to a decision:
//
//	NOSCRIPT                                  the script's text is sent, once
//	MOVED, ASK (cluster)                      followed, at most three times
//	READONLY, LOADING, OOM, TRYAGAIN,         an error; nothing was charged. Nothing is repeated: the next decision
//	CLUSTERDOWN, MASTERDOWN, NOPERM           finds out whether it is over
//	CROSSSLOT                                 an error: the limits of the call are of several tenants
//	no answer in time, broken connection      an error; charged once or not at all, never sent again
//	mistyped key, unreadable level            rebuilt as a missing bucket, told to Found
//	rights of a moved key missing, unreadable the floor counts, told to Found
//	caller gives up                           its own error; a call under way goes on, one still waiting is not sent
type Redis struct {
	opts   Options
	script script
	lost   atomic.Int64
	// generation of the source of the rules.
	generation atomic.Int64
	fenced     atomic.Pointer[func() bool]
	lanes      lanes
	quit       chan struct{}
	wg         sync.WaitGroup
}

// NewRedis starts a store.
func NewRedis(o Options) *Redis {
	o.Workers, o.BatchSize, o.Queue = orDefault(o.Workers, 2), orDefault(o.BatchSize, 64), orDefault(o.Queue, 4096)
	o.CallTimeout, o.LossHorizon = orDefault(o.CallTimeout, 500*time.Millisecond), orDefault(o.LossHorizon, 10*time.Minute)
	s := &Redis{opts: o, script: newScript(o.Script), quit: make(chan struct{})}
	s.lanes.store = s
	if _, ok := o.Client.(*redis.ClusterClient); ok {
		s.lanes.homes = new(homes)
	}
	return s
}

func orDefault[T int | time.Duration](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// SetLoss records when this Redis last lost its data, by its own clock; the zero time means never. Until a bucket has had
// the time to fill since, a missing one is not taken for a full one.
func (s *Redis) SetLoss(at time.Time) {
	if at.IsZero() {
		s.lost.Store(0)
		return
	}
	s.lost.Store(at.UnixMilli())
}

// SetGeneration says how many sources of rules have been in force here before that of the callers. Revisions order what one source
// says; whatever a later generation says is newer than all of an earlier one.
func (s *Redis) SetGeneration(n int64) { s.generation.Store(n) }

// SetFenced says what tells whether the region may use no more than its floor. It is asked just before each call is sent, and
// must be as cheap as that is often.
func (s *Redis) SetFenced(fenced func() bool) { s.fenced.Store(&fenced) }

// Take implements Store. All limits of one call must be of one tenant, so that they share a slot.
func (s *Redis) Take(ctx context.Context, limits []Limit) (limit.Decision, error) {
	switch {
	case len(limits) == 0:
		return limit.Decision{}, nil
	case len(limits) == 1 && limits[0].Rule.Shards > 1:
		return s.takeSharded(ctx, limits[0])
	}
	return s.ask(ctx, limits)
}

func (s *Redis) ask(ctx context.Context, limits []Limit) (limit.Decision, error) {
	describe(ctx)
	generation := s.generation.Load()
	c := newCall(ctx, limits, generation)
	if err := s.lanes.send(ctx, c); err != nil {
		return limit.Decision{}, fmt.Errorf("ask redis for a decision: %w", err)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		// The call goes on without us: what it takes is lost, at most once.
		return limit.Decision{}, fmt.Errorf("wait for redis's decision: %w", context.Cause(ctx))
	case <-s.quit:
		return limit.Decision{}, fmt.Errorf("wait for redis's decision: %w", ErrClosed)
	}
	line, err := c.reply, c.err
	describeBatch(ctx, c.batch)
	c.free()
	if err != nil {
		return limit.Decision{}, fmt.Errorf("ask redis for a decision: %w", err)
	}
	d, found, err := parseReply(line, limits, generation)
	if err != nil {
		return limit.Decision{}, fmt.Errorf("read redis's decision: %w", err)
	}
	if (found.Broken || found.Lost) && s.opts.Found != nil {
		s.opts.Found(found)
	}
	return d, nil
}

// Close ends the workers after the calls under way. Decisions still waiting get ErrClosed.
func (s *Redis) Close() {
	s.lanes.close()
	s.wg.Wait()
}
