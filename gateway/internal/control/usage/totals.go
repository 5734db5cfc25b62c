package usage

import "partidor.dev/partidor/shared/limit"

// Totals is what has been counted of one key so far: tokens admitted and refused, cumulative. ok is false for a key that is
// not counted.
func (t *Table) Totals(key limit.Key) (admitted, refused uint64, ok bool) {
	s := t.shard(key)
	s.mu.RLock()
	c := s.counters[key]
	s.mu.RUnlock()
	if c == nil {
		return 0, 0, false
	}
	return c.admitted.Load(), c.refused.Load(), true
}
