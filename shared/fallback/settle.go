package fallback

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Owing tells whether any key may owe something. It is cheap enough for every request.
func (l *Local) Owing() bool { return l.owing.Load() > 0 }

// Claim hands out what key owes at now, once: whoever claims it sends it to Redis as bucket.Limit.Owed, before or with the
// next take. If Redis certainly did not see it, Restore brings it back; if that is uncertain it is let go, for a debt is
// never taken twice.
//
// Owed is what was admitted, but at most what is missing from this instance's part: the bucket in Redis filled up meanwhile
// and what it could not hold is gone, so charging more would punish the tenant for the length of the outage.
func (l *Local) Claim(now time.Time, key limit.Key) int64 {
	if !l.Owing() {
		return 0
	}
	s := l.buckets.Get(key)
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.claim(l.since(now), s)
}

func (l *Local) claim(at int64, s *local) int64 {
	s.refill(at, s.in)
	missing := int64(math.Ceil(s.in.part - s.part - tolerance))
	return min(l.clear(s), max(0, missing))
}

// clear forgets a debt and tells how much it was. The lock is held.
func (l *Local) clear(s *local) int64 {
	owed := s.owed
	if owed > 0 {
		s.owed = 0
		l.owing.Add(-1)
	}
	return owed
}

// Restore takes a claim back that Redis did not see.
func (l *Local) Restore(key limit.Key, owed int64) {
	s := l.buckets.Get(key)
	if s == nil || owed <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	if s.owed == 0 {
		l.owing.Add(1)
	}
	s.owed += owed
}

// Debts claims what up to max keys owe, each as a limit of cost 0 that carries its debt, appended to dst: for keys whose
// tenants do not come back by themselves.
func (l *Local) Debts(now time.Time, dst []bucket.Limit, max int) []bucket.Limit {
	if !l.Owing() {
		return dst
	}
	at := l.since(now)
	l.buckets.Range(func(_ limit.Key, s *local) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owed == 0 {
			return true
		}
		last := s.last
		if last.Owed = l.claim(at, s); last.Owed > 0 {
			dst = append(dst, last)
		}
		return len(dst) < max
	})
	return dst
}
