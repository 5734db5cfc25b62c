package collect

import (
	"time"

	"partidor.dev/partidor/shared/limit"
)

const (
	// freshFor is how long a reported share counts as the one in force: it moves only while somebody asks for it.
	freshFor = 20 * time.Second
	// tornAfter is how long shares may make no whole: a transfer in flight is in nobody's hands, and reports of two regions
	// are never of the same moment.
	tornAfter = time.Minute
)

// weigh counts the keys whose shares make no whole. Only keys that are in use in every region can be judged: where nobody
// asks, nobody knows the share in force.
func (t *Table) weigh(now time.Duration) {
	t.over, t.short = 0, 0
	for _, k := range t.keys {
		sum, known := t.held(now, k)
		switch {
		case !known || sum == limit.Whole:
			k.torn = 0
			continue
		case k.torn == 0:
			k.torn = now
		}
		if now-k.torn < tornAfter {
			continue
		}
		if sum > limit.Whole {
			t.over++
		} else {
			t.short++
		}
	}
}

// held is what all regions together hold of a key, if every one that was ever heard lately has told.
func (t *Table) held(now time.Duration, k *key) (sum limit.Share, known bool) {
	for r := range t.states {
		if t.states[r].heard < 0 || now-t.states[r].heard > t.options.ForgetAfter {
			continue
		}
		if r >= len(k.loads) || k.loads[r].shareAt == 0 || now-k.loads[r].shareAt > freshFor {
			return 0, false
		}
		sum += k.loads[r].share
		known = true
	}
	return sum, known
}
