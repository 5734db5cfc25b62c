package fallback

import (
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// Owing tells whether any key may owe something. It is cheap enough for every request.
func (l *Local) Owing() bool { return l.owing.Load() > 0 }

// Claim hands out what key owes, once: whoever claims it sends it to Redis as bucket.Limit.Owed, before or with the next
// take. If Redis certainly did not see it, Restore brings it back; if that is uncertain it is let go, for a debt is never
// taken twice.
func (l *Local) Claim(key limit.Key) int64 {
	if !l.Owing() {
		return 0
	}
	s := l.buckets.Get(key)
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.claim(s)
}

func (l *Local) claim(s *local) int64 {
	owed := s.owed
	if owed > 0 {
		s.owed = 0
		l.owing.Add(-1)
	}
	return owed
}

// Restore takes a claim back that Redis did not see.
func (l *Local) Restore(key limit.Key, owed int64) {
	if owed <= 0 {
		return
	}
	s := l.buckets.Get(key)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owed == 0 {
		l.owing.Add(1)
	}
	s.owed += owed
}

// Debts claims what up to max keys owe, each as a limit of cost 0 that carries its debt, appended to dst: for keys whose
// tenants do not come back by themselves.
func (l *Local) Debts(dst []bucket.Limit, max int) []bucket.Limit {
	if !l.Owing() {
		return dst
	}
	l.buckets.Range(func(_ limit.Key, s *local) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owed > 0 {
			last := s.last
			last.Owed = l.claim(s)
			dst = append(dst, last)
		}
		return len(dst) < max
	})
	return dst
}
