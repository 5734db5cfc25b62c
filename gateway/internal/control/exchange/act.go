package exchange

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/telemetry"
)

// workers run pipelines of steps; more than one so that a slow one does not hold up the next.
const workers = 4

// done is what came of a pipeline of steps.
type done struct {
	tasks   []redisstore.Task
	results []redisstore.Result
}

func (x *Exchange) startWorkers(ctx context.Context) (wait func()) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for tasks := range x.work {
				x.execute(ctx, tasks)
			}
		})
	}
	return func() {
		close(x.work)
		wg.Wait()
	}
}

// execute runs one pipeline. A step outlives the end of ctx but has its own deadline, so that no debit is cut in half.
func (x *Exchange) execute(ctx context.Context, tasks []redisstore.Task) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	results := x.o.Store.Do(call, tasks)
	select {
	case x.inbox <- done{tasks, results}:
	case <-ctx.Done():
	}
}

// act takes what the agent wants, sends the messages and hands the steps to the workers.
func (x *Exchange) act(ctx context.Context) {
	if x.agent == nil {
		return
	}
	out := x.agent.Drain()
	x.sendRows(ctx, out.Rows)
	x.sendAcks(ctx, out.Acks)
	x.sendAsks(ctx, out.Asks)
	for _, s := range out.Steps {
		l, ok := x.limit(s.Key)
		if !ok || len(x.pending) >= inbox { // no rule any more, or a Redis that does not keep up
			x.metrics.dropped(ctx, "step")
			continue
		}
		if x.mustWait(s, l) {
			x.agent.Failed(time.Now(), s)
			continue
		}
		x.pending = append(x.pending, redisstore.Task{Step: s, Limit: l})
	}
	for len(x.pending) > 0 && x.busy < workers {
		n := min(len(x.pending), stepBatch)
		x.work <- x.pending[:n:n] // never blocks: busy counts what is under way
		x.pending = x.pending[n:]
		x.busy++
	}
}

// mustWait tells whether a step would be its key's first move while the base split changes (PROTOCOL R15): the region that gives
// would note the share that the change leaves it, the one that gets the share it had, and what lies between would be nobody's.
func (x *Exchange) mustWait(s rights.Step, l bucket.Limit) bool {
	return (s.Op == rights.OpGive || s.Op == rights.OpLend) && !l.Moved && x.o.Rules.Load().Changing()
}

// finished hands the results of a pipeline to the agent.
func (x *Exchange) finished(ctx context.Context, now time.Time, d done) {
	x.busy--
	failed := 0
	for i := range d.tasks {
		step, r := d.tasks[i].Step, &d.results[i]
		x.metrics.step(ctx, step.Op, r)
		if r.Err != nil {
			failed++
		} else {
			x.span(now, step, &r.Report)
			if r.Report.Verdict == rights.Applied && (step.Op == rights.OpApply || r.Report.Amount > 0) {
				x.noteMoved(step.Key, Recorded{r.Report.Base, r.Report.Floor})
			}
		}
		if x.agent == nil {
			continue
		}
		if r.Err != nil {
			x.agent.Failed(now, step)
			continue
		}
		if r.Report.Verdict == rights.Lost {
			x.lost(ctx, now, step.Key)
		}
		if r.Report.Phase == rights.Relearning && r.Report.Verdict == rights.Inactive {
			x.relearn(ctx, now, step.Key, r.Report.Incarnation) // whoever led before has begun to
		}
		x.agent.Reported(now, step, r.Report)
	}
	if failed > 0 {
		x.o.Logger.WarnContext(ctx, "steps of rights failed", "failed", failed, "of", len(d.tasks), "error", firstError(d.results))
	}
}

func firstError(results []redisstore.Result) error {
	for i := range results {
		if results[i].Err != nil {
			return results[i].Err
		}
	}
	return nil
}

// span records a step that moved something, within the trace of the advice, the ask or the row that caused it, and makes what follows
// from it part of the same trace.
func (x *Exchange) span(now time.Time, step rights.Step, r *rights.Report) {
	switch step.Op {
	case rights.OpGive, rights.OpLend:
		if r.Verdict == rights.Applied && r.Amount == 0 {
			return
		}
	case rights.OpApply:
	default:
		return
	}
	ctx := x.traces.of(now, step.Key)
	if ctx == nil {
		return
	}
	ctx, span := x.o.Tracer.Start(ctx, "transfer."+step.Op.String(), trace.WithAttributes(
		telemetry.AttributeTenant.String(step.Key.Tenant), telemetry.AttributeRoute.String(step.Key.Route),
		telemetry.AttributePeer.String(step.Peer), telemetry.AttributeAmount.Int64(r.Amount),
		telemetry.AttributeShare.Int64(int64(r.Share)), telemetry.AttributeVerdict.String(r.Verdict.String()),
	))
	if r.Verdict != rights.Applied {
		span.SetStatus(codes.Error, r.Verdict.String())
	}
	span.End()
	x.traces.remember(now, step.Key, ctx)
}
