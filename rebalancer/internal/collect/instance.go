package collect

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// counter is what an instance last said of a key.
type counter struct {
	admitted, refused uint64
	// elapsed is the instance's age at that report, in milliseconds.
	elapsed int64
}

// instance is one life of one gateway process.
type instance struct {
	region  int
	started int64
	// complete: we have listened since before this life began, so its counters count from zero.
	complete bool
	reported bool
	heard    time.Duration
	draining bool
	// stale, degraded: it serves by a saved snapshot, without its Redis.
	stale, degraded bool
	// rules is the newest revision the instance serves by, zero before its first heartbeat.
	rules limit.Revision
	seen  sequence
	// elapsed is the age of the newest report, before that of the one before it: a key that was left out since had not
	// changed by then.
	elapsed, before int64
	counters        map[*key]counter
}

// report tells the instance of a report's place in the order. It returns false for a report that cannot be true.
func (in *instance) report(u *wire.Usage, place verdict) bool {
	switch {
	case u.ElapsedMillis > in.elapsed:
		if place != afterGap {
			in.before = in.elapsed
		}
		in.elapsed = u.ElapsedMillis
	case u.ElapsedMillis < in.elapsed && place != late:
		return false // a newer message from an older age
	}
	return true
}

// unchangedUntil is the age until which a key that a report of the given age mentions had surely not changed, had it been
// left out before. For an overtaken report that is one interval before it.
func (in *instance) unchangedUntil(age int64) int64 {
	if age >= in.elapsed {
		return in.before
	}
	return max(0, age-(in.elapsed-in.before))
}

// sequence recognises repeated messages among the last 64.
type sequence struct {
	newest uint64
	// mask has bit i set where newest − i was seen.
	mask uint64
}

type verdict uint8

const (
	inOrder verdict = iota
	afterGap
	late
	repeated
)

// observe places one message. Messages more than 64 behind count as late: their counters decide.
func (s *sequence) observe(n uint64) verdict {
	switch {
	case s.mask == 0:
		s.newest, s.mask = n, 1
		return inOrder
	case n > s.newest:
		shift := n - s.newest
		s.newest = n
		s.mask = s.mask<<min(shift, 64) | 1
		if shift > 1 {
			return afterGap
		}
		return inOrder
	}
	behind := s.newest - n
	if behind >= 64 {
		return late
	}
	if s.mask>>behind&1 == 1 {
		return repeated
	}
	s.mask |= 1 << behind
	return late
}
