package admit

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Elsewhere consumes tiny limits, all rights to which sit in one region, where that is not this one.
//
// Take returns within its own budget, some 150 ms. An error means that nobody decided; a token may have been lost, never
// doubled. What it admitted goes back to its home by calling back, once; back may be nil. Refused answers from memory where no
// token can be at the home. All methods are safe for many goroutines.
type Elsewhere interface {
	// Away tells whether key is consumed in another region; first is its home before it is ever moved.
	Away(key limit.Key, first string) bool
	Take(ctx context.Context, now time.Time, lim *bucket.Limit, first string) (d limit.Decision, back func(), err error)
	Refused(now time.Time, lim *bucket.Limit) (limit.Decision, bool)
	// Left notes that this region turned out not to hold the rights any more.
	Left(key limit.Key)
}

// unableFor is when to come back where a home could not be asked.
const unableFor = time.Second

// elsewhere decides a request with a tiny limit among its limits. Those that are decided here come first, all or none; what has
// been charged is given back, here and at homes, if a home refuses afterwards. Nobody is asked where a refusal is remembered.
func (a *Admitter) elsewhere(ctx context.Context, now time.Time, c *call) limit.Decision {
	here := a.calls.Get().(*call)
	here.intact, here.ahead, here.failed = true, c.ahead, false
	here.limits, here.shadows = here.limitRoom[:0], here.shadowRoom[:0]
	away := [mostLimits]bool{}
	for i := range c.limits {
		if away[i] = c.homes[i] != "" && a.opts.Elsewhere.Away(c.limits[i].Key, c.homes[i]); !away[i] {
			here.limits = append(here.limits, c.limits[i])
		} else if d, ok := a.opts.Elsewhere.Refused(now, &c.limits[i]); ok {
			a.calls.Put(here)
			return d
		}
	}
	d := limit.Decision{Outcome: limit.Allowed}
	if len(here.limits) > 0 {
		d = a.enforce(ctx, now, here)
		a.left(c, &d)
	}
	var taken [mostLimits]func() // at homes
	for i := range c.limits {
		if d.Outcome != limit.Allowed || !away[i] {
			continue
		}
		there, back := a.there(ctx, now, &c.limits[i], c.homes[i])
		taken[i] = back
		if there.Outcome != limit.Allowed {
			a.giveBack(ctx, now, here.limits, &d)
			for _, back := range taken {
				if back != nil {
					back()
				}
			}
		}
		if there.Outcome != limit.Allowed || d.Rule == nil || there.Remaining < d.Remaining {
			d = there
		}
	}
	if here.intact {
		a.calls.Put(here)
	}
	return d
}

// left tells Elsewhere of a tiny limit that was refused here because its rights have gone.
func (a *Admitter) left(c *call, d *limit.Decision) {
	if d.Outcome == limit.Allowed || d.Share != 0 || d.Source != limit.SourceRedis {
		return
	}
	for i := range c.limits {
		if c.homes[i] != "" && c.limits[i].Key == d.Key {
			a.opts.Elsewhere.Left(d.Key)
		}
	}
}

// there asks a home. If the rights turn out to be here, it decides here; where nobody decides, on_error does: nothing of a
// tiny limit is held here that could be spent instead. back, where not nil, undoes what was charged.
func (a *Admitter) there(ctx context.Context, now time.Time, lim *bucket.Limit, first string) (d limit.Decision, back func()) {
	d, back, err := a.opts.Elsewhere.Take(ctx, now, lim, first)
	switch {
	case err == nil:
		return d, back
	case !a.opts.Elsewhere.Away(lim.Key, first):
		here := a.calls.Get().(*call)
		here.intact, here.ahead, here.failed = true, false, false
		here.limits, here.shadows = append(here.limitRoom[:0], *lim), here.shadowRoom[:0]
		d = a.enforce(ctx, now, here)
		if here.intact {
			a.calls.Put(here)
		}
		if d.Outcome == limit.Allowed {
			charged, by := *lim, d
			back = func() { a.giveBack(ctx, now, []bucket.Limit{charged}, &by) }
		}
		return d, back
	}
	spanFailed(ctx, err)
	d = limit.Decision{
		Source: limit.SourceHome, Key: lim.Key, Rule: lim.Rule, Revision: lim.Revision, Degraded: true,
		Outcome: limit.Unable, RetryAfter: unableFor,
	}
	if lim.Rule.OnError == limit.OnErrorAllow {
		d.Outcome, d.RetryAfter = limit.Allowed, 0
	}
	return d, nil
}

// giveBack returns what was taken here to where it was taken from. It is sent once.
func (a *Admitter) giveBack(ctx context.Context, now time.Time, limits []bucket.Limit, d *limit.Decision) {
	if len(limits) == 0 || limits[0].Cost == 0 {
		return
	}
	if d.Source == limit.SourceFallback {
		a.local.GiveBack(now, limits, a.terms(limits))
		return
	}
	for _, lim := range limits {
		lim.Owed, lim.Cost, lim.Ahead = -lim.Cost, 0, 0
		a.adjust(context.WithoutCancel(ctx), lim)
	}
}
