package bucket

import "partidor.dev/partidor/shared/limit"

// state and grant look into a Memory and change the rights of a key there, as a transfer does in Redis.
func (m *Memory) state(k limit.Key) (State, bool) {
	p := m.part(k.Tenant)
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.buckets[k]
	return b.State, ok
}

func (m *Memory) grant(k limit.Key, r Rights, now int64) {
	p := m.part(k.Tenant)
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.buckets[k]
	b.Rights, b.At = r, now
	p.buckets[k] = b
}
