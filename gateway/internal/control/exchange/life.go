package exchange

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

const (
	// watchEvery is how often the region's record is compared with the server that keeps it, askLifeEvery how often peers
	// are asked again for what they remember.
	watchEvery   = 500 * time.Millisecond
	askLifeEvery = 500 * time.Millisecond
	// askLifeMost is how slowly peers are asked that re-learn themselves.
	askLifeMost = 4 * time.Second
	// probeEvery is how often peers are asked whether they know of a later life of this region.
	probeEvery = 5 * time.Second
	// jobTimeout bounds one piece of recovery: many keys in several pipelines.
	jobTimeout = 30 * time.Second
)

// event is the outcome of a job, to be taken in by the loop.
type event func(ctx context.Context, now time.Time)

// job does I/O beside the loop and hands what came of it back. Run waits for all jobs.
func (x *Exchange) job(ctx context.Context, do func(ctx context.Context) event) {
	x.jobs.Go(func() {
		call, cancel := context.WithTimeout(ctx, jobTimeout)
		defer cancel()
		if e := do(call); e != nil {
			select {
			case x.inbox <- e:
			case <-ctx.Done():
			}
		}
	})
}

// watch compares the region's record with the server, and goes on with a recovery that somebody has begun.
func (x *Exchange) watch(ctx context.Context, now time.Time) {
	if x.watching || now.Sub(x.watched) < watchEvery {
		return
	}
	x.watching, x.watched = true, now
	x.job(ctx, func(ctx context.Context) event {
		record, err := x.o.Store.Record(ctx)
		run := ""
		if err == nil {
			run, err = x.o.Store.RunID(ctx)
		}
		return func(ctx context.Context, now time.Time) {
			x.watching = false
			if err == nil { // a Redis that is away is the breaker's to tell
				x.seen(ctx, now, record, run)
			}
		}
	})
}

// seen judges the record: lost, suspect, re-learning or in order.
func (x *Exchange) seen(ctx context.Context, now time.Time, record redisstore.Record, run string) {
	x.runSeen = run
	x.meet(record)
	if !x.o.Leads() || x.beginning {
		return
	}
	suspect := record.Self > 0 && run != "" && record.Run != "" && run != record.Run
	switch {
	case record.Self == 0 || suspect:
		x.begin(ctx, now, record.Self, record.Self, run)
	case x.agent == nil: // fenced: what is re-learned counts once the lease is renewed
	case record.Phase == rights.Relearning && (x.region == nil || x.region.number != record.Self):
		x.region = newRecovery(record.Self, x.peers, nil)
	case record.Phase == rights.Active:
		x.region = nil
	}
	x.self, x.phase = record.Self, record.Phase
	if record.Self == 0 {
		x.phase = rights.Relearning
	}
}

// begin starts a new incarnation of the whole region. Keys that are still there, of a server that is another one than before,
// each begin anew at once: their floors are in force from then on. The new number exceeds before; judged is the life in our own
// record that is found to be over.
func (x *Exchange) begin(ctx context.Context, now time.Time, before, judged int64, run string) {
	number := x.nextNumber(now, before)
	x.beginning, x.region = true, nil
	x.o.Logger.WarnContext(ctx, "the rights in Redis are of a former life or missing: a new incarnation begins", "incarnation", number, "before", before)
	x.job(ctx, func(ctx context.Context) event {
		// What was judged may be old by now: where another instance has begun a life since, that one is the new life.
		if now, err := x.o.Store.Record(ctx); err == nil && now.Self > judged {
			return func(context.Context, time.Time) { x.beginning = false }
		}
		x.o.Store.Forget()
		record, err := x.o.Store.BeginRegion(ctx, number, run)
		if err == nil {
			err = x.o.Store.Moved(ctx, func(keys []limit.Key) error {
				x.run(ctx, x.tasks(keys, rights.Step{Op: rights.OpBegin, Number: record.Self, Lost: true}))
				return nil
			})
		}
		return func(ctx context.Context, _ time.Time) {
			x.beginning = false
			if err != nil {
				x.o.Logger.WarnContext(ctx, "new incarnation not begun; it is tried again", "error", err)
				return
			}
			x.meet(record)
			if x.agent != nil {
				x.region = newRecovery(record.Self, x.peers, nil)
			}
		}
	})
}

// nextNumber is an incarnation that was never used before. Numbers follow the time of day, which survives any loss of data; if
// a clock is set back, the peers, who remember, refuse the number and name the one to exceed. A region's own are even: those of a
// leader that acts in its name are odd, so that they never take the same.
func (x *Exchange) nextNumber(now time.Time, above int64) int64 {
	x.last = max(now.UnixMilli(), x.last+1, above+1)
	x.last += x.last & 1
	return x.last
}

// Lost begins to re-learn one key whose rights are missing although it has moved. It may be called from anywhere.
func (x *Exchange) Lost(key limit.Key) {
	select {
	case x.inbox <- event(func(ctx context.Context, now time.Time) { x.lost(ctx, now, key) }):
	default: // whoever meets the key next says so again
	}
}

func (x *Exchange) lost(ctx context.Context, now time.Time, key limit.Key) {
	if x.agent == nil || x.phase != rights.Active || x.self == 0 || len(x.keys) >= maxKeyRecoveries || x.relearning(key) {
		return
	}
	number := x.nextNumber(now, x.self)
	r := newRecovery(number, x.peers, []limit.Key{key})
	x.keys[number] = r
	x.o.Logger.WarnContext(ctx, "rights of a moved key are missing: they are asked of the other regions", "tenant", key.Tenant, "route", key.Route, "incarnation", number)
	x.job(ctx, func(ctx context.Context) event {
		results := x.run(ctx, x.tasks([]limit.Key{key}, rights.Step{Op: rights.OpBegin, Number: number, Lost: true}))
		return func(context.Context, time.Time) {
			if len(results) != 1 || results[0].Err != nil || results[0].Report.Verdict != rights.Applied {
				delete(x.keys, number) // met again, it begins again
			}
		}
	})
}

// tasks makes the same step for many keys. Keys without a rule any more are left out.
func (x *Exchange) tasks(keys []limit.Key, step rights.Step) []redisstore.Task {
	tasks := make([]redisstore.Task, 0, len(keys))
	for _, k := range keys {
		if l, ok := x.limit(k); ok {
			step.Key = k
			l.Moved = false // what is missing is made here
			tasks = append(tasks, redisstore.Task{Step: step, Limit: l})
		}
	}
	return tasks
}

// run executes tasks in pipelines of bounded size.
func (x *Exchange) run(ctx context.Context, tasks []redisstore.Task) []redisstore.Result {
	results := make([]redisstore.Result, 0, len(tasks))
	for len(tasks) > 0 {
		n := min(len(tasks), stepBatch)
		results = append(results, x.o.Store.Do(ctx, tasks[:n])...)
		tasks = tasks[n:]
	}
	return results
}

// movedKeys is how many keys are known to have moved, by the ledger or by hearsay.
func (x *Exchange) movedKeys() int { return x.o.Rules.Load().Counts().Moved }

// live asks those peers again that have not answered yet, and ends recoveries that everybody has answered.
func (x *Exchange) live(ctx context.Context, now time.Time) {
	if x.region != nil {
		x.pursue(ctx, now, x.region)
	}
	for _, r := range x.keys {
		x.pursue(ctx, now, r)
	}
	x.probe(ctx, now)
}

// probe asks the peers whether somebody has acted in this region's name: after it was declared dead and what it held was minted
// anew, it must not go on as before.
func (x *Exchange) probe(ctx context.Context, now time.Time) {
	if x.self == 0 || x.phase != rights.Active || now.Sub(x.probed) < probeEvery {
		return
	}
	x.probed = now
	for _, peer := range x.peers { // where leases run, renewals are answered so too
		v := wire.Void{Header: x.header(x.self), To: peer, Probe: true}
		x.publish(ctx, wire.SubjectVoid(peer, x.o.Region), "void", 1, &v)
	}
}

// superseded takes in that somebody knows of a later life of this region than asked: what is here is of a former one.
func (x *Exchange) superseded(ctx context.Context, now time.Time, asked, known int64) {
	if x.o.Leads() && !x.beginning && asked == x.self && known > x.self {
		x.begin(ctx, now, known, x.self, x.runSeen)
	}
}

func (x *Exchange) pursue(ctx context.Context, now time.Time, r *recovery) {
	if r.ending {
		return
	}
	if r.complete() && (!r.whole || r.decides(x.o.Region)) {
		r.ending = true
		x.end(ctx, r)
		return
	}
	if r.complete() {
		r.again(now) // one that decides before this region has not decided yet
	}
	if now.Sub(r.asked) < r.wait {
		return
	}
	r.asked = now
	for peer, h := range r.peers {
		if h.done {
			continue
		}
		v := wire.Void{Header: x.header(r.number), To: peer, Keys: r.names(), Moved: x.movedKeys()}
		x.publish(ctx, wire.SubjectVoid(peer, x.o.Region), "void", max(1, len(v.Keys)), &v)
	}
}
