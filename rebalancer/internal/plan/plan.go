package plan

import (
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Input is everything a plan rests on.
type Input struct {
	Now        time.Time
	Parameters Parameters
	Regions    []Region
	Keys       []Demand
	// Homes: gateways consume tiny limits at their home region, so the plan gathers all rights to them there. Without it
	// tiny limits are divided like others.
	Homes bool
}

// Result of one plan. Its slices share memory and are read-only.
type Result struct {
	// Targets of the planned keys, in the order of Input.Keys.
	Targets []Target
	// Moves of all keys, key by key.
	Moves []Move
	// Skipped counts keys that have nothing to plan: no rule, blocked, unlimited, sharded, or malformed.
	Skipped int
	// Changed counts the targets that differ from what the regions hold.
	Changed int
}

// Target is the split that a key should have.
type Target struct {
	Key limit.Key
	// Observed is the split the plan started from: what the regions reported, with what is under way put where it goes.
	Observed []limit.Share
	// Shares add up to exactly limit.Whole.
	Shares []limit.Share
	// Changed is false where the key is left alone; Shares then equals Observed.
	Changed bool
	Reason  Reason
}

// Move is share that one region should give another. Regions are indexes into Input.Regions.
type Move struct {
	Key      limit.Key
	From, To int
	Amount   limit.Share
	// Held is the share the giver is believed to hold, Target what it should hold after all its moves of this key. A
	// giver gives at most its share − Target, so that a move told twice, or late, is not made twice.
	Held   limit.Share
	Target limit.Share
	// Floor is the share the giver must keep.
	Floor  limit.Share
	Reason Reason
}

// Plan computes the targets of all keys and the moves that lead there. It reads nothing but in and always gives the
// same result for the same input. Malformed keys (wrong number of loads) are skipped.
func Plan(in Input) Result {
	s := newScratch(&in)
	n := len(in.Regions)
	store := make([]limit.Share, 0, 2*n*len(in.Keys))
	res := Result{Targets: make([]Target, 0, len(in.Keys))}
	if n == 0 {
		res.Skipped = len(in.Keys)
		return res
	}
	for i := range in.Keys {
		d := &in.Keys[i]
		if !plannable(d, n) {
			res.Skipped++
			continue
		}
		s.load(d)
		reason := s.decide(d)
		store = append(store, s.current...)
		observed := store[len(store)-n:]
		store = append(store, s.target...)
		t := Target{Key: d.Key, Observed: observed, Shares: store[len(store)-n:], Reason: reason}
		before := len(res.Moves)
		res.Moves = s.transport(d.Key, reason, res.Moves)
		if t.Changed = len(res.Moves) > before; t.Changed {
			res.Changed++
		}
		res.Targets = append(res.Targets, t)
	}
	return res
}

func plannable(d *Demand, regions int) bool {
	if d.Rule == nil || d.Rule.Mode == limit.Block || d.Rule.Mode == limit.Unlimited || d.Rule.Shards > 1 {
		return false
	}
	return len(d.Loads) == regions && (d.Last == nil || len(d.Last) == regions) && (d.Pins == nil || len(d.Pins) == regions) &&
		rateOf(d.Rule) > 0
}
