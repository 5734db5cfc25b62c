package fallback

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// State of a breaker.
type State uint32

// The states. Closed: Redis is asked. Open: it is not. HalfOpen: a few trials are under way.
const (
	Closed State = iota
	Open
	HalfOpen
)

func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	default:
		return "half-open"
	}
}

// trials is how many calls in a row must succeed before a breaker closes, and how many it lets through at once.
const trials = 3

// never keeps failsafe's own delay out of the way: this package schedules the trials, to double and jitter the wait
// (failsafe computes delays only for calls that run through its executor, which costs 14 allocations each).
const never = 100 * 365 * 24 * time.Hour

// BreakerOptions say when a breaker opens and when it tries again. Zero values mean the defaults.
type BreakerOptions struct {
	// FailureRate, from 0 to 1, of at least MinCalls calls within Window opens it. Defaults 0.5, 20 and 2 s. The window is
	// kept by failsafe and follows the process's clock. Where calls are rarer, nothing but failures for Window (three or
	// more) opens it too.
	FailureRate float64
	MinCalls    int
	Window      time.Duration
	// Slow is the duration from which a call counts as failed, whatever it answered. Default 5 ms.
	Slow time.Duration
	// Delay is the wait before the first trial, doubled after each failed one up to MaxDelay and jittered by a quarter
	// either way, so that instances do not try together. Defaults 250 ms and 5 s.
	Delay, MaxDelay time.Duration
	// OnChange is told every change of state, one at a time. It must not call the breaker.
	OnChange func(now time.Time, from, to State)
}

func (o BreakerOptions) withDefaults() BreakerOptions {
	if o.FailureRate <= 0 || o.FailureRate > 1 {
		o.FailureRate = 0.5
	}
	if o.MinCalls <= 0 {
		o.MinCalls = 20
	}
	if o.Window <= 0 {
		o.Window = 2 * time.Second
	}
	if o.Slow <= 0 {
		o.Slow = 5 * time.Millisecond
	}
	if o.Delay <= 0 {
		o.Delay = 250 * time.Millisecond
	}
	if o.MaxDelay <= 0 {
		o.MaxDelay = 5 * time.Second
	}
	o.MaxDelay = max(o.MaxDelay, o.Delay)
	return o
}

// Breaker stops asking a Redis node that fails or answers slowly. It is safe for many goroutines.
type Breaker struct {
	opts BreakerOptions
	cb   circuitbreaker.CircuitBreaker[any]

	state atomic.Uint32
	// life numbers the stretches between changes of state: what a call of an earlier one brings is no longer news.
	life atomic.Uint32

	failing atomic.Bool               // a run of failures is under way
	tryAt   atomic.Pointer[time.Time] // when open: the next trial

	mu       sync.Mutex
	run      int       // failures since the last success
	runSince time.Time // when the first of them ended
	failed   int       // trials failed since it was last closed
}

// NewBreaker is a closed breaker.
func NewBreaker(o BreakerOptions) *Breaker {
	o = o.withDefaults()
	return &Breaker{
		opts: o,
		cb: circuitbreaker.NewBuilder[any]().
			WithFailureRateThreshold(o.FailureRate, uint(o.MinCalls), o.Window).
			WithSuccessThreshold(trials).
			WithDelay(never).
			Build(),
	}
}

// Permit is the leave to make one call. It must be handed back with Done.
type Permit struct{ life uint32 }

// Acquire asks for leave to call Redis at now. Without it nothing is to be handed back.
func (b *Breaker) Acquire(now time.Time) (Permit, bool) {
	if b.State() == Open && !b.tryNow(now) {
		return Permit{}, false
	}
	life := b.life.Load()
	if !b.cb.TryAcquirePermit() {
		return Permit{}, false
	}
	return Permit{life}, true
}

// Done tells how a call went that took so long and ended at now. A call that the asker itself broke off says nothing of
// Redis: give such calls a context that outlives the client.
func (b *Breaker) Done(now time.Time, p Permit, took time.Duration, err error) {
	if p.life != b.life.Load() {
		return
	}
	if err != nil || took >= b.opts.Slow {
		b.fail(now)
		return
	}
	b.cb.RecordSuccess()
	if b.failing.Load() {
		b.mu.Lock()
		b.run = 0
		b.failing.Store(false)
		b.mu.Unlock()
	}
	if b.State() != Closed {
		b.mu.Lock()
		b.follow(now)
		b.mu.Unlock()
	}
}

func (b *Breaker) fail(now time.Time) {
	b.cb.RecordFailure()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == 0 {
		b.runSince = now
		b.failing.Store(true)
	}
	if b.run++; b.run >= trials && now.Sub(b.runSince) >= b.opts.Window {
		b.cb.Open()
	}
	b.follow(now)
}

// Calm tells that nothing is wrong as far as is known: the breaker is closed and the last call went well.
func (b *Breaker) Calm() bool { return b.State() == Closed && !b.failing.Load() }

// State is where the breaker stands.
func (b *Breaker) State() State { return State(b.state.Load()) }

// RetryAfter is the time until Redis is tried again: zero unless open.
func (b *Breaker) RetryAfter(now time.Time) time.Duration {
	if at := b.tryAt.Load(); at != nil && b.State() == Open {
		return max(0, at.Sub(now))
	}
	return 0
}

// tryNow half-opens an open breaker whose wait is over.
func (b *Breaker) tryNow(now time.Time) bool {
	if at := b.tryAt.Load(); at == nil || now.Before(*at) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.State() == Open {
		b.cb.HalfOpen()
		b.become(now, HalfOpen)
	}
	return true
}

// follow notices what failsafe made of the last result. The lock is held.
func (b *Breaker) follow(now time.Time) {
	var to State
	switch b.cb.State() {
	case circuitbreaker.OpenState:
		to = Open
	case circuitbreaker.HalfOpenState:
		to = HalfOpen
	default:
		to = Closed
	}
	from := b.State()
	if from == to {
		return
	}
	b.run = 0
	b.failing.Store(false)
	if to == Open {
		if from == HalfOpen {
			b.failed++
		}
		at := now.Add(b.wait())
		b.tryAt.Store(&at)
	} else {
		b.failed = 0
	}
	b.become(now, to)
}

func (b *Breaker) become(now time.Time, to State) {
	from := b.State()
	b.life.Add(1)
	b.state.Store(uint32(to))
	if b.opts.OnChange != nil {
		b.opts.OnChange(now, from, to)
	}
}

// wait is the jittered time to the next trial.
func (b *Breaker) wait() time.Duration {
	d := b.opts.Delay
	for i := 0; i < b.failed && d < b.opts.MaxDelay; i++ {
		d *= 2
	}
	d = min(d, b.opts.MaxDelay)
	return d*3/4 + rand.N(d/2+1)
}
