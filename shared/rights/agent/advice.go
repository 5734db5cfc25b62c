package agent

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// Advice is the rebalancer's word about one key: give Amount of share to To, never below Target.
type Advice struct {
	Key limit.Key
	To  string
	// Term of the leader and Cycle within it: of a lower one than followed before, nothing is done.
	Term, Cycle    int64
	Target, Amount limit.Share
}

// Advise follows advice as far as the region's own need allows. Advice that comes again, late, or from a leader that has been
// replaced gives nothing.
func (a *Agent) Advise(now time.Time, moves []Advice) {
	for _, m := range moves {
		if m.Term > a.term {
			a.term = m.Term
		}
	}
	for _, m := range moves {
		k := a.key(now, m.Key)
		if k == nil || k.peer(m.To) == nil || m.Amount <= 0 || m.Term < a.term {
			a.Ignored++
			continue
		}
		if m.Term == k.term && m.Cycle < k.cycle || m.Term == k.term && m.Cycle == k.cycle && k.followed(m.To) {
			a.Ignored++
			continue
		}
		if m.Term != k.term || m.Cycle != k.cycle {
			k.term, k.cycle, k.advised = m.Term, m.Cycle, k.advised[:0]
		}
		k.advised = append(k.advised, m)
		a.look(now, k) // the need is judged with fresh eyes
	}
}

func (k *key) followed(to string) bool {
	for _, m := range k.advised {
		if m.To == to {
			return true
		}
	}
	return false
}

// follow executes advice that waits for a look at the key.
func (a *Agent) follow(now time.Time, k *key) {
	for i := range k.advised {
		m := &k.advised[i]
		if m.Amount <= 0 {
			continue
		}
		keep := max(m.Target, k.level.floor, a.keeps(now, k))
		if k.tiny() {
			keep = m.Target // the home moves whole, whatever it is offered: it can be consumed from everywhere
		}
		if k.level.share > keep {
			a.step(rights.Step{Key: k.id, Op: rights.OpGive, Peer: m.To, Amount: int64(m.Amount), Keep: float64(keep)})
		} else {
			a.Refused++
		}
		m.Amount = 0
	}
}

// keeps is the share that no advice may take: what the region needs now. Where it is offered more than its own share for a
// quarter of a minute, an equal part of the whole is all that it can insist on.
func (a *Agent) keeps(now time.Time, k *key) limit.Share {
	need := a.needed(now, k)
	if k.demand.usual > 1.05*k.level.rate && k.demand.fast > k.level.rate {
		need = min(need, limit.Whole/limit.Share(len(k.peers)+1))
	}
	return need
}
