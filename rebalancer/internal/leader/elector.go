package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// Row is the lease as the store has it.
type Row struct {
	Term     int64
	Holder   string // "" where nobody leads
	Renewals int64
}

// ErrLost is what a Store answers when the row is no longer the caller's to change.
var ErrLost = errors.New("the lease is another's")

// Store keeps the row. Its methods return within ctx's deadline and are not called concurrently.
type Store interface {
	Read(ctx context.Context) (Row, error)
	// Take makes holder the leader under a higher term if the row is still what seen says, else fails with ErrLost.
	Take(ctx context.Context, seen Row, holder string) (term int64, err error)
	// Renew raises renewals if the row still has term, else fails with ErrLost.
	Renew(ctx context.Context, term int64) error
	// Resign leaves the row without a holder if it still has term.
	Resign(ctx context.Context, term int64) error
}

// Options of an Elector. The zero durations are replaced by the defaults beside them.
type Options struct {
	Store  Store
	Holder string
	// Lease (3 s) is how long a row must stand still before another takes over; Renew (1 s) how often the leader renews and
	// a candidate looks; Margin (500 ms) how long before the end of its lease the leader stops.
	Lease, Renew, Margin time.Duration
	Logger               *slog.Logger
}

// Elector takes part in the election.
type Elector struct {
	Options
	term atomic.Int64
}

// New completes the options.
func New(o Options) *Elector {
	if o.Lease <= 0 {
		o.Lease = 3 * time.Second
	}
	if o.Renew <= 0 {
		o.Renew = o.Lease / 3
	}
	if o.Margin <= 0 {
		o.Margin = o.Lease / 6
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Elector{Options: o}
}

// Term is the term this process leads in, 0 while it does not lead.
func (e *Elector) Term() int64 { return e.term.Load() }

// Run takes part until ctx ends, calling lead whenever this process becomes the leader. lead's context ends when trust in
// the lease does; lead must return soon after. If lead returns by itself, the lease is resigned.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, term int64)) {
	var (
		seen  Row
		still time.Time // since when the row stands still, by our clock
		last  error
	)
	tick := time.NewTicker(e.Renew / 2)
	defer tick.Stop()
	for ctx.Err() == nil {
		row, err := e.read(ctx)
		switch {
		case err != nil:
			if last == nil && ctx.Err() == nil {
				e.Logger.Warn("cannot read the lease", "error", err)
			}
			still = time.Time{} // whatever happened while we could not look
		case row != seen || still.IsZero():
			seen, still = row, time.Now()
		}
		last = err
		if err == nil && (row.Holder == "" || time.Since(still) >= e.Lease) {
			if term, sent, ok := e.take(ctx, row); ok {
				e.reign(ctx, term, sent, lead)
			}
			still = time.Time{}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (e *Elector) read(ctx context.Context) (Row, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Lease)
	defer cancel()
	return e.Store.Read(ctx)
}

func (e *Elector) take(ctx context.Context, seen Row) (term int64, sent time.Time, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, e.Lease)
	defer cancel()
	sent = time.Now()
	term, err := e.Store.Take(ctx, seen, e.Holder)
	if err != nil {
		if !errors.Is(err, ErrLost) && ctx.Err() == nil {
			e.Logger.Warn("cannot take the lease", "error", err)
		}
		return 0, sent, false
	}
	return term, sent, true
}

// reign leads until the lease is lost, ctx ends or lead returns, and always waits for lead.
func (e *Elector) reign(ctx context.Context, term int64, sent time.Time, lead func(context.Context, int64)) {
	e.Logger.Info("leading", "term", term)
	e.term.Store(term)
	work, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		lead(work, term)
	}()
	why := e.renew(ctx, term, sent, done)
	e.term.Store(0)
	stop()
	<-done
	e.Logger.Info("no longer leading", "term", term, "why", why)
	if !errors.Is(why, ErrLost) {
		e.resign(ctx, term)
	}
}

// renew keeps the lease and returns why it no longer does.
func (e *Elector) renew(ctx context.Context, term int64, sent time.Time, done <-chan struct{}) error {
	trust := e.Lease - e.Margin
	end := time.NewTimer(time.Until(sent.Add(trust)))
	defer end.Stop()
	tick := time.NewTicker(e.Renew)
	defer tick.Stop()
	type answer struct {
		sent time.Time
		err  error
	}
	answers := make(chan answer, 1)
	asking := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			return errors.New("the work has ended")
		case <-end.C:
			return errors.New("the lease could not be renewed in time")
		case <-tick.C:
			if asking {
				continue
			}
			asking = true
			go func(now time.Time) {
				// Its own deadline, not ctx: an answer that comes too late is of no use, and none may outlive a lease.
				call, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Lease)
				defer cancel()
				answers <- answer{now, e.Store.Renew(call, term)}
			}(time.Now())
		case a := <-answers:
			asking = false
			switch {
			case errors.Is(a.err, ErrLost):
				return a.err
			case a.err != nil:
				e.Logger.Warn("cannot renew the lease", "error", a.err)
			default:
				end.Reset(time.Until(a.sent.Add(trust)))
			}
		}
	}
}

func (e *Elector) resign(ctx context.Context, term int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Renew)
	defer cancel()
	if err := e.Store.Resign(ctx, term); err != nil {
		e.Logger.Warn("cannot resign the lease", "error", err)
	}
}
