package rights

import (
	"maps"
	"slices"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Op is what a Step does.
type Op uint8

// The operations of a step.
const (
	OpGive Op = iota + 1
	OpLend
	OpApply
	OpAcknowledge
	// OpLook only reports.
	OpLook
	// OpBegin starts a new incarnation, OpVoid takes in a peer's, OpLearn its answer, OpActivate ends re-learning.
	OpBegin
	OpVoid
	OpLearn
	OpActivate
)

var opNames = [...]string{"", "give", "lend", "apply", "acknowledge", "look", "begin", "void", "learn", "activate"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

// Step is one operation on one key, to be executed atomically where the state is kept: by a script in Redis, or on a State.
type Step struct {
	Key  limit.Key
	Op   Op
	Peer string
	// Amount of share in parts per million (give) or of whole tokens (lend): at most so much.
	Amount int64
	// Keep is the share (give) or the tokens (lend) that must stay.
	Keep float64
	// Row to apply, Ack to take in, Answer to learn.
	Row    Row
	Ack    Ack
	Answer Answer
	// Number of the incarnation to begin, or of the peer's that is taken in. Lost: the data is gone, the bucket restarts empty.
	Number int64
	Lost   bool
}

// Report is what a step found and left behind.
type Report struct {
	Verdict Verdict
	// Amount that was given or lent, that was kept of a loan, or that came back of one.
	Amount int64
	// Now is the time of the step by the clock of the store.
	Now time.Time
	bucket.Level
	Share, Base, Floor limit.Share
	Held               int64
	// Effective capacity in tokens.
	Effective   float64
	Incarnation int64
	Phase       Phase
	// Waiting share of a window algorithm comes into force at Due, µs since 1970, with the first step after that.
	Waiting limit.Share
	Due     int64
	// Pair with the peer, after the step.
	Pair Pair
}

// Row is the peer's row as the step left it.
func (r *Report) Row(from string) Row {
	return Row{
		From: from, To: r.Pair.Region, Incarnation: r.Incarnation, Receiver: r.Pair.Incarnation, Epoch: r.Pair.Epoch,
		Base: r.Base, Sent: r.Pair.Out,
	}
}

// Ack is what the peer is told of its row after a step of OpApply with the verdict Applied.
func (r *Report) Ack(from string) Ack {
	return Ack{
		From: from, To: r.Pair.Region, Incarnation: r.Incarnation, Receiver: r.Pair.Incarnation, Epoch: r.Pair.Epoch,
		Received: r.Pair.In,
	}
}

// Answer is what the peer is told after a step of OpVoid with the verdict Applied.
func (r *Report) Answer(from string) Answer {
	p := &r.Pair
	return Answer{
		From: from, To: p.Region, Incarnation: r.Incarnation, Receiver: p.Incarnation, Epoch: p.Epoch, Base: r.Base,
		Out: p.Out, In: p.In, Acked: p.Acked,
	}
}

// Env is what holds around a step executed on a State.
type Env struct {
	Now time.Time
	// Peers are the other regions with the lowest incarnation of each that is not void: a key that moves for the first time
	// opens a pair with every one.
	Peers map[string]int64
	// Numbers and Revision are the rule as the caller knows it, adopted where newer.
	Numbers  bucket.Numbers
	Revision limit.Revision
}

// Do executes a step on s as the scripts do: s changes in whole, or not at all.
func (s *State) Do(env Env, step Step) Report {
	next := s.Clone()
	next.Adopt(env.Now, env.Numbers, env.Revision)
	if !next.Moved && step.Op != OpBegin {
		next.Open(env.Peers)
	}
	if step.Op != OpBegin && step.Op != OpActivate {
		p := next.pair(step.Peer)
		p.Incarnation = max(p.Incarnation, env.Peers[step.Peer])
	}
	var r Report
	switch step.Op {
	case OpBegin, OpVoid, OpLearn, OpActivate:
		r.Verdict = next.relive(env, step)
	case OpAcknowledge:
		r.Verdict = Absurd // unless something was ever sent
		if s.Moved {
			r = next.execute(env.Now, step)
		}
	default:
		r = next.execute(env.Now, step)
	}
	if s.changed(&next, step.Op, &r) {
		*s = next
	}
	next.Settle(env.Now)
	r.Now, r.Level, r.Phase = env.Now, next.Level, next.Phase
	r.Pair = Pair{Region: step.Peer, Epoch: FirstEpoch}
	if p := next.Pair(step.Peer); p != nil {
		r.Pair = *p
	}
	r.Share, r.Base, r.Floor, r.Held = next.Share, next.Base, next.Floor, next.Held()
	r.Effective, r.Incarnation = next.Effective(), next.Incarnation
	r.Waiting, r.Due = next.Waiting, next.Due
	return r
}

// changed tells whether next, the outcome of a step on s, is to be kept.
func (s *State) changed(next *State, op Op, r *Report) bool {
	switch op {
	case OpLook:
		return next.Share != s.Share && s.Moved // what waited has come into force
	case OpGive, OpLend:
		return r.Amount > 0
	case OpLearn:
		return r.Verdict == Applied
	}
	if r.Verdict != Applied && op != OpVoid {
		return false
	}
	return next.Moved != s.Moved || next.Phase != s.Phase || next.Incarnation != s.Incarnation || !slices.Equal(s.Pairs, next.Pairs)
}

// relive executes the steps of a new incarnation.
func (s *State) relive(env Env, step Step) Verdict {
	switch step.Op {
	case OpBegin:
		if !s.Begin(env.Now, step.Number, step.Lost) {
			return Outdated
		}
	case OpVoid:
		known := s.Pair(step.Peer).Incarnation
		if step.Number < known {
			return Outdated
		}
		if _, ok := s.Void(env.Now, Void{From: step.Peer, Incarnation: step.Number}); !ok {
			return Inactive
		}
	case OpLearn:
		return s.Learn(step.Answer)
	case OpActivate:
		peers := slices.Sorted(maps.Keys(env.Peers))
		if !s.Activate(env.Now, peers) {
			return Inactive
		}
	}
	return Applied
}

func (s *State) execute(now time.Time, step Step) (r Report) {
	if s.Phase != Active {
		r.Verdict = Inactive
		return r
	}
	before := *s.Pair(step.Peer)
	switch step.Op {
	case OpGive:
		r.Amount = int64(s.Give(now, step.Peer, limit.Share(step.Amount), limit.Share(step.Keep)))
	case OpLend:
		r.Amount = s.Lend(now, step.Peer, step.Amount, step.Keep)
	case OpApply:
		_, r.Verdict = s.Apply(now, step.Row)
		after := s.Pair(step.Peer).In
		r.Amount = after.Loan - before.In.Loan - (after.Refused - before.In.Refused)
	case OpAcknowledge:
		r.Verdict = s.Acknowledge(now, step.Ack)
		r.Amount = s.Pair(step.Peer).Acked.Refused - before.Acked.Refused
	}
	return r
}
