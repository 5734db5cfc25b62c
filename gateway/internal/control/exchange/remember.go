package exchange

import (
	"context"
	"errors"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

var errNotAnswered = errors.New("an answer has become void")

// hearVoid takes in that a peer lives under a new incarnation, and tells it what this region remembers.
func (x *Exchange) hearVoid(ctx context.Context, m *wire.Void) {
	if m.To != x.o.Region || x.agent == nil {
		return
	}
	if m.Probe {
		x.hearProbe(ctx, m)
		return
	}
	if m.Proxy && !x.silent(m.Region) {
		return // this region has heard of it
	}
	for _, r := range x.recoveries() { // what the peer said in its former life counts no more
		r.forget(m.Region, m.Incarnation, m.Keys)
	}
	if x.answering[m.Region] {
		return // it asks again
	}
	x.answering[m.Region] = true
	blank := x.movedKeys() == 0 && m.Moved == 0
	silence := x.ear.Wait(m.Region)
	lacks := x.lacks()
	x.job(ctx, func(ctx context.Context) event {
		var answers []wire.Answer
		var own found
		agreed, err := true, error(nil)
		if m.Proxy {
			agreed, err = x.agree(ctx, m, silence)
		}
		if err == nil && agreed {
			answers, own, err = x.remember(ctx, m, blank, lacks)
		}
		return func(ctx context.Context, now time.Time) {
			x.answering[m.Region] = false
			for _, k := range own.lost {
				x.lost(ctx, now, k)
			}
			for k, number := range own.relearning {
				x.relearn(ctx, now, k, number)
			}
			if err != nil {
				x.o.Logger.WarnContext(ctx, "a peer's new incarnation could not be answered; it asks again", "peer", m.Region, "error", err)
				return
			}
			if len(answers) > 0 && own.pending && !lacks.equal(x.lacks()) {
				return // what is not known here has changed meanwhile; it asks again
			}
			for i := range answers {
				h := x.header(answers[i].Incarnation)
				h.Part, h.Parts = answers[i].Part, answers[i].Parts
				answers[i].Header, answers[i].Agreed = h, m.Proxy
				x.publish(ctx, wire.SubjectAnswer(m.Region, x.o.Region), "answer", max(1, len(answers[i].Keys)), &answers[i])
			}
		}
	})
}

// hearProbe answers only a region that others know under a higher number.
func (x *Exchange) hearProbe(ctx context.Context, m *wire.Void) {
	x.job(ctx, func(ctx context.Context) event {
		record, err := x.o.Store.VoidPeer(ctx, m.Region, 0) // raises nothing
		if err != nil || record.Peer <= m.Incarnation {
			return nil
		}
		return func(ctx context.Context, _ time.Time) {
			a := wire.Answer{Header: x.header(record.Self), To: m.Region, ReceiverIncarnation: m.Incarnation, Known: record.Peer}
			x.publish(ctx, wire.SubjectAnswer(m.Region, x.o.Region), "answer", 1, &a)
		}
	})
}

// found is what a void has shown of this region's own keys: those whose rights are missing, those that somebody has begun to
// re-learn, and whether anything is pending.
type found struct {
	lost       []limit.Key
	relearning map[limit.Key]int64
	pending    bool
}

// remember records the peer's number everywhere, first in the region's record so that no old row is accepted from here on, and
// collects what is kept of the pair. A region that re-learns itself says so instead, and what it counts without the peer.
func (x *Exchange) remember(ctx context.Context, m *wire.Void, blank bool, lacks gaps) ([]wire.Answer, found, error) {
	own := found{relearning: map[limit.Key]int64{}}
	record, err := x.o.Store.Record(ctx)
	if err != nil {
		return nil, own, err
	}
	all := len(m.Keys) == 0 || m.Proxy || m.Dead
	if all {
		if record, err = x.o.Store.VoidPeer(ctx, m.Region, m.Incarnation); err != nil {
			return nil, own, err
		}
	}
	if record.Peer > m.Incarnation {
		return []wire.Answer{{Header: wire.Header{Incarnation: record.Self}, To: m.Region, ReceiverIncarnation: m.Incarnation, Known: record.Peer}}, own, nil
	}
	answer := wire.Answer{To: m.Region, ReceiverIncarnation: m.Incarnation}
	answer.Incarnation = record.Self
	var listed []wire.AnswerKey
	var known int64
	void := func(keys []limit.Key) error {
		list, higher, err := x.voidKeys(ctx, m, keys, record.Self, lacks, &own)
		listed, known = append(listed, list...), max(known, higher)
		return err
	}
	if len(m.Keys) > 0 {
		keys := make([]limit.Key, len(m.Keys))
		for i, k := range m.Keys {
			keys[i] = limit.Key{Tenant: k.Tenant, Route: k.Route}
		}
		err = void(keys)
	} else {
		err = x.o.Store.Moved(ctx, void)
	}
	if err != nil {
		return nil, own, err
	}
	active := record.Self > 0 && record.Phase == rights.Active
	switch {
	case known > 0:
		answer.Known = known
		return []wire.Answer{answer}, own, nil
	case record.Self == 0:
		return nil, own, nil
	case !active && blank:
		answer.Blank = true
		return []wire.Answer{answer}, own, nil
	case !active && (lacks.region == nil || m.Proxy || m.Dead):
		return nil, own, nil
	case !active:
		answer.Relearning, answer.ReceiverIncarnation, answer.Missing = m.Incarnation, wire.Nobody, lacks.region
		own.pending = true
	}
	chunks := wire.Chunks(listed)
	answers := make([]wire.Answer, len(chunks))
	for i, c := range chunks {
		answers[i] = answer
		answers[i].Keys, answers[i].Part, answers[i].Parts = c, i+1, len(chunks)
	}
	return answers, own, nil
}

// voidKeys records the peer's number at each key and gives the counters of those that have any. known is a number of the peer
// that is higher than the one it has taken, if there is one.
func (x *Exchange) voidKeys(ctx context.Context, m *wire.Void, keys []limit.Key, self int64, lacks gaps, own *found) (list []wire.AnswerKey, known int64, err error) {
	tasks := x.tasks(keys, rights.Step{Op: rights.OpVoid, Peer: m.Region, Number: m.Incarnation})
	for i := range tasks {
		tasks[i].Limit.Moved = x.moved(tasks[i].Step.Key)
	}
	var forgot []int
	for i, r := range x.run(ctx, tasks) {
		if r.Err != nil {
			return nil, 0, r.Err
		}
		key, p := tasks[i].Step.Key, &r.Report.Pair
		row := wire.AnswerKey{Tenant: key.Tenant, Route: key.Route, Incarnation: max(1, r.Report.Incarnation), Epoch: p.Epoch, Base: r.Report.Base}
		switch r.Report.Verdict {
		case rights.Outdated:
			known = max(known, p.Incarnation)
		case rights.Applied:
			row.Out, row.In, row.Acked = countersOf(p.Out), receivedCounters(p.In), receivedCounters(p.Acked)
			if len(m.Keys) > 0 || row.Out != [3]int64{} || row.In != [4]int64{} {
				list = append(list, row)
			}
		case rights.Lost:
			own.lost = append(own.lost, key)
			row.Pending = true
			list = append(list, row)
		default: // this region re-learns the key itself
			row.Pending = true
			list = append(list, row)
			if _, ok := lacks.of(key); !ok {
				own.relearning[key] = r.Report.Incarnation
			} else if p.Incarnation == m.Incarnation && r.Report.Incarnation >= self && r.Report.Phase == rights.Relearning {
				forgot = append(forgot, len(list)-1) // the peer's former lives are refused here
			}
		}
	}
	return list, known, x.account(ctx, list, forgot, lacks, own)
}

// account adds to keys that this region re-learns what it counts without the peer.
func (x *Exchange) account(ctx context.Context, list []wire.AnswerKey, forgot []int, lacks gaps, own *found) error {
	if len(forgot) == 0 {
		return nil
	}
	own.pending = true
	keys := make([]limit.Key, len(forgot))
	for i, at := range forgot {
		keys[i] = limit.Key{Tenant: list[at].Tenant, Route: list[at].Route}
	}
	states, errs := x.o.Store.Read(ctx, keys)
	for i, at := range forgot {
		if errs[i] != nil && !errors.Is(errs[i], redisstore.ErrUnreadable) {
			return errs[i]
		}
		s, row := &states[i], &list[at]
		if !s.Moved || s.Phase != rights.Relearning || s.Incarnation != row.Incarnation {
			continue // not begun, or over
		}
		missing, _ := lacks.of(keys[i])
		row.Forgot = &wire.Forgot{Account: int64(s.Account()), Floor: s.Floor, Missing: missing}
	}
	return nil
}

func (x *Exchange) moved(key limit.Key) bool {
	l, ok := x.limit(key)
	return ok && l.Moved
}

func countersOf(s rights.Sent) [3]int64 { return [3]int64{int64(s.Share), s.Ride, s.Loan} }

func receivedCounters(r rights.Received) [4]int64 {
	return [4]int64{int64(r.Share), r.Ride, r.Loan, r.Refused}
}
