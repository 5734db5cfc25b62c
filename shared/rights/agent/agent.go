package agent

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// Options of an Agent.
type Options struct {
	Region string
	Peers  []string
	Policy Policy
	// RoundTrip between regions, about; it tells which limits are small.
	RoundTrip time.Duration
	// Rule looks up the rule of a key as it stands, nil where there is none.
	Rule func(limit.Key) *limit.Rule
}

// Agent acts for one region. It is not safe for concurrent use.
type Agent struct {
	region  string
	regions []string
	policy  Policy
	trip    time.Duration
	rule    func(limit.Key) *limit.Rule
	keys    map[limit.Key]*key
	order   []*key // of the keys' arrival, so that equal inputs give equal outputs
	out     Output
	term    int64

	// Ignored counts advice that came again, late or from a former leader; Refused advice that would have taken what the
	// region needs; Silenced messages that were over a key's budget.
	Ignored, Refused, Silenced uint64
}

// New makes an agent.
func New(o Options) *Agent {
	return &Agent{
		region: o.Region, regions: o.Peers, policy: o.Policy, trip: o.RoundTrip, rule: o.Rule,
		keys: map[limit.Key]*key{},
	}
}

// SetPolicy changes the parameters from now on.
func (a *Agent) SetPolicy(p Policy) { a.policy = p }

// Drain gives what is to be done since the last time. The slices belong to the caller.
func (a *Agent) Drain() Output {
	out := a.out
	a.out = Output{}
	return out
}

// Keys is how many keys the agent has in mind.
func (a *Agent) Keys() int { return len(a.keys) }

// key finds or makes a key; nil if no rule is known for it.
func (a *Agent) key(now time.Time, id limit.Key) *key {
	k := a.keys[id]
	if k == nil {
		rule := a.rule(id)
		if rule == nil {
			return nil
		}
		k = &key{id: id, since: now, rule: rule, asking: asking{gap: askEvery}}
		for _, r := range a.regions {
			k.peers = append(k.peers, peer{region: r})
		}
		a.keys[id] = k
		a.order = append(a.order, k)
	}
	k.used = now
	return k
}

// lends tells whether tokens and share of the key may move by the fast loop.
func (a *Agent) lends(k *key) bool {
	return k.rule.Algorithm == limit.TokenBucket && k.rule.Shards <= 1 && !k.tiny() && !k.still()
}

// Observe takes in what the instances of the region see of a key: the rate offered (admitted and refused) in tokens per
// second, and the tokens refused since the last time.
func (a *Agent) Observe(now time.Time, id limit.Key, rate, refused float64) {
	k := a.key(now, id)
	if k == nil {
		return
	}
	k.demand.observe(now, rate, refused)
	if refused > 0 {
		a.look(now, k)
	}
}

// HearAsk takes in a peer's ask.
func (a *Agent) HearAsk(now time.Time, ask Ask) {
	if k := a.key(now, ask.Key); k != nil {
		a.hearAsk(now, k, ask)
	}
}

// HearRow takes in a peer's row.
func (a *Agent) HearRow(now time.Time, m RowMessage) {
	k := a.key(now, m.Key)
	if k == nil {
		return
	}
	if q := k.peer(m.Row.From); q != nil {
		q.spare, q.spareAt = max(m.Spare, 0), now
		a.step(rights.Step{Key: k.id, Op: rights.OpApply, Peer: q.region, Row: m.Row})
	}
}

// HearAck takes in a peer's acknowledgement.
func (a *Agent) HearAck(now time.Time, m AckMessage) {
	k := a.key(now, m.Key)
	if k == nil {
		return
	}
	if q := k.peer(m.Ack.From); q != nil {
		q.spare, q.spareAt = max(m.Spare, 0), now
		a.step(rights.Step{Key: k.id, Op: rights.OpAcknowledge, Peer: q.region, Ack: m.Ack})
	}
}

// Restore takes in the rights of a key as found in the store at start: what is unacknowledged is sent again.
func (a *Agent) Restore(now time.Time, id limit.Key, s *rights.State) {
	k := a.key(now, id)
	if k == nil || !s.Moved {
		return
	}
	k.level.moved = true
	if s.Waiting > 0 {
		k.due = time.UnixMicro(s.Due)
	}
	for i := range s.Pairs {
		q := k.peer(s.Pairs[i].Region)
		if row, ok := s.Row(a.region, s.Pairs[i].Region); ok && q != nil && s.Pairs[i].Pending() {
			q.row, q.pending, q.tries = row, true, 0
			a.sendRow(now, k, q)
		}
	}
}

// Reported takes in what a step left behind.
func (a *Agent) Reported(now time.Time, step rights.Step, r rights.Report) {
	k := a.keys[step.Key]
	if k == nil {
		return
	}
	first := !k.level.moved
	k.learn(now, &r)
	gave := r.Amount > 0
	switch step.Op {
	case rights.OpLook:
		k.looking = false
		a.noteRow(now, k, &r, false)
		a.follow(now, k)
		a.donate(now, k)
		a.consider(now, k)
	case rights.OpGive, rights.OpLend:
		a.noteRow(now, k, &r, gave)
	case rights.OpApply:
		if r.Verdict != rights.Applied {
			return
		}
		k.level.moved = true
		a.out.Acks = append(a.out.Acks, AckMessage{Key: k.id, Ack: r.Ack(a.region), Spare: k.spare(now, &a.policy)})
		if gave {
			k.asking.got += float64(r.Amount)
			k.asking.gap = askFresh
		}
		a.noteRow(now, k, &r, false)
	case rights.OpAcknowledge:
		a.noteRow(now, k, &r, false)
	}
	if first && k.level.moved { // the others have to hear that the key has moved
		for i := range k.peers {
			if k.peers[i].region != step.Peer {
				a.step(rights.Step{Key: k.id, Op: rights.OpLook, Peer: k.peers[i].region})
			}
		}
	}
}

// Failed takes in that it is unknown what became of a step: the key is looked at again.
func (a *Agent) Failed(now time.Time, step rights.Step) {
	k := a.keys[step.Key]
	if k == nil {
		return
	}
	k.looking = false
	k.level.known = false
	if step.Op == rights.OpGive || step.Op == rights.OpLend {
		a.step(rights.Step{Key: k.id, Op: rights.OpLook, Peer: step.Peer})
	}
}

// Tick lets time pass: hot keys are looked at, unacknowledged rows sent again, idle keys forgotten.
func (a *Agent) Tick(now time.Time) {
	kept := a.order[:0]
	for _, k := range a.order {
		a.resend(now, k)
		if a.hot(now, k) || !k.due.IsZero() && now.After(k.due) {
			a.look(now, k)
		}
		if now.Sub(k.used) > a.policy.IdleAfter && !k.waiting() {
			delete(a.keys, k.id)
			continue
		}
		kept = append(kept, k)
	}
	clear(a.order[len(kept):])
	a.order = kept
}

// hot tells whether a key needs to be looked at: somebody asks for it, or its own demand may empty it.
func (a *Agent) hot(now time.Time, k *key) bool {
	if !a.policy.FastLoop || !a.lends(k) || now.Sub(k.lookedAt) < a.policy.Every {
		return false
	}
	for i := range k.peers {
		if !k.peers[i].standing.empty() {
			return true
		}
	}
	if k.demand.fast < 0.05 && k.demand.refused < 1 {
		return false
	}
	return !k.level.known || k.tokens(now) < 0.8*k.level.effective || now.Sub(k.lookedAt) > time.Second
}

// waiting tells whether a row of the key is still unacknowledged, or share of it is not in force yet.
func (k *key) waiting() bool {
	if !k.due.IsZero() {
		return true
	}
	for i := range k.peers {
		if k.peers[i].pending {
			return true
		}
	}
	return false
}

// look asks the store about a key, unless it has been asked already.
func (a *Agent) look(now time.Time, k *key) {
	if k.looking && now.Sub(k.lookedAt) < time.Second || len(k.peers) == 0 {
		return
	}
	if r := a.rule(k.id); r != nil {
		k.rule = r
	}
	k.looking, k.lookedAt = true, now
	a.step(rights.Step{Key: k.id, Op: rights.OpLook, Peer: k.peers[0].region})
}

func (a *Agent) step(s rights.Step) { a.out.Steps = append(a.out.Steps, s) }

// spend takes messages off the key's budget, or tells that there are not enough left.
func (a *Agent) spend(now time.Time, k *key, messages float64) bool {
	if a.budget(now, k).spend(messages) {
		return true
	}
	a.Silenced++
	return false
}

// budget is this region's part of what a key may cost all regions together, as it is now.
func (a *Agent) budget(now time.Time, k *key) *budget {
	regions := float64(len(k.peers) + 1)
	k.budget.refill(now, a.policy.MessagesPerMinute/60/regions, a.policy.MessageBurst/regions)
	return &k.budget
}
