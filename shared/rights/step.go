package rights

import (
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
)

var opNames = [...]string{"", "give", "lend", "apply", "acknowledge", "look"}

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
	// Row to apply, Ack to take in.
	Row Row
	Ack Ack
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
	if !next.Moved {
		next.Open(env.Peers)
	}
	next.pair(step.Peer).Incarnation = max(next.pair(step.Peer).Incarnation, env.Peers[step.Peer])
	var r Report
	if step.Op == OpAcknowledge && !s.Moved {
		r.Verdict = Absurd // nothing was ever sent
	} else {
		r = next.execute(env.Now, step)
	}
	if !s.Moved && r.Verdict == Applied && step.Op == OpApply || !slices.Equal(s.Pairs, next.Pairs) && s.Moved || r.Amount > 0 {
		*s = next
	}
	next.Settle(env.Now)
	r.Now, r.Level, r.Phase, r.Pair = env.Now, next.Level, next.Phase, *next.Pair(step.Peer)
	r.Share, r.Base, r.Floor, r.Held = next.Share, next.Base, next.Floor, next.Held()
	r.Effective, r.Incarnation = next.Effective(), next.Incarnation
	return r
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
