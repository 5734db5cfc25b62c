package hot

import (
	"context"
	"sync/atomic"
)

// inFlight counts requests from head to end of answer, upgraded connections until they close. http.Server forgets the
// latter, so that its Shutdown alone would cut them off.
type inFlight struct {
	count atomic.Int64
	idle  atomic.Pointer[chan struct{}] // Closed, once, by whoever leaves last.
}

func (f *inFlight) enter() { f.count.Add(1) }

func (f *inFlight) leave() {
	if f.count.Add(-1) == 0 {
		if idle := f.idle.Swap(nil); idle != nil {
			close(*idle)
		}
	}
}

// Wait returns nil once nothing is in flight any more, or the error of ctx. It is meant for a server that accepts nothing
// new; only one caller may wait.
func (h *Handler) Wait(ctx context.Context) error {
	idle := make(chan struct{})
	h.inFlight.idle.Store(&idle)
	if h.inFlight.count.Load() == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
