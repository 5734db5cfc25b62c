package admit

import (
	"context"
	"sync/atomic"
	"time"
)

// spend is the context of one call to the store: it carries the values of the request's context, not its end, and has a
// deadline of its own. It is reused from call to call, unless it ran out, so that a deadline costs no allocation
// (context.WithTimeout makes four).
type spend struct {
	values   context.Context
	deadline time.Time
	timer    *time.Timer
	done     chan struct{}
	over     atomic.Bool
}

var _ context.Context = (*spend)(nil)

func (s *spend) begin(values context.Context, deadline time.Time, left time.Duration) {
	s.values, s.deadline = values, deadline
	if s.timer == nil {
		s.done = make(chan struct{})
		s.timer = time.AfterFunc(left, s.expire)
		return
	}
	s.timer.Reset(left)
}

// end tells whether the context may be used again: it has not run out.
func (s *spend) end() bool {
	if !s.timer.Stop() {
		return false
	}
	s.values = context.Background()
	return true
}

func (s *spend) expire() {
	s.over.Store(true)
	close(s.done)
}

// Deadline, Done, Err and Value make it a context.
func (s *spend) Deadline() (time.Time, bool) { return s.deadline, true }

// Done is closed at the deadline.
func (s *spend) Done() <-chan struct{} { return s.done }

// Err is context.DeadlineExceeded from the deadline on.
func (s *spend) Err() error {
	if s.over.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

// Value is the request's.
func (s *spend) Value(key any) any { return s.values.Value(key) }
