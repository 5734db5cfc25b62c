package e2e

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fault is something that fails for a while and is then mended.
type fault struct {
	name string
	// It lasts at least so long, and until it has had its effect, where until tells.
	lasts time.Duration
	until func() error
	once  bool
	begin func(*testing.T)
	end   func(*testing.T)
}

const (
	briefly = 2500 * time.Millisecond
	// beyondRegion is longer than the lease of a region with the voters' margin.
	beyondRegion = 13 * time.Second
)

// lane is a row of faults, each mended before the next begins.
type lane struct {
	rng   *rand.Rand
	next  []fault
	open  *fault // under way
	due   time.Time
	given time.Time // until when an effect is waited for
}

// disturb lets the faults of each lane happen in the order that the seed decides, while the other lanes go on: each once, and
// again until length has passed. A machine that is slow stretches the schedule and changes nothing in it.
func (w *world) disturb(t *testing.T, seed uint64, length time.Duration, lanes ...[]fault) {
	t.Helper()
	start := time.Now()
	var all []*lane
	for i, faults := range lanes {
		l := &lane{rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		l.shuffle(faults, false)
		l.pause(300 * time.Millisecond)
		all = append(all, l)
	}
	for {
		var first *lane
		for i, l := range all {
			if l.open == nil && len(l.next) == 0 && time.Since(start) < length {
				l.shuffle(lanes[i], true)
			}
			if (l.open != nil || len(l.next) > 0) && (first == nil || l.due.Before(first.due)) {
				first = l
			}
		}
		if first == nil {
			return
		}
		wait(t, time.Until(first.due))
		first.step(t, start)
	}
}

func (l *lane) shuffle(faults []fault, again bool) {
	for _, i := range l.rng.Perm(len(faults)) {
		if !again || !faults[i].once {
			l.next = append(l.next, faults[i])
		}
	}
}

// step begins the lane's next fault or mends the one under way.
func (l *lane) step(t *testing.T, start time.Time) {
	t.Helper()
	log := func(name, what string) { t.Logf("%6.1f s  %s%s", time.Since(start).Seconds(), name, what) }
	if l.open == nil {
		l.open, l.next = &l.next[0], l.next[1:]
		log(l.open.name, "")
		l.open.begin(t)
		l.pause(l.open.lasts)
		l.given = time.Now().Add(patient)
		return
	}
	if l.open.until != nil {
		if err := l.open.until(); err != nil && time.Now().Before(l.given) {
			l.due = time.Now().Add(250 * time.Millisecond)
			return
		} else if err != nil {
			t.Errorf("%s: %v", l.open.name, err)
		}
	}
	log(l.open.name, ", mended")
	l.open.end(t)
	l.open = nil
	l.pause(300 * time.Millisecond)
}

// pause lets the lane rest for that long and up to a second more.
func (l *lane) pause(d time.Duration) {
	l.due = time.Now().Add(d + time.Duration(l.rng.Int64N(int64(time.Second))))
}
