package usage

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/shared/wire"
)

// maxMembers bounds the instances of one region that are remembered.
const maxMembers = 4096

// Members is who lives in a region, as far as heartbeats tell. Times are monotonic ages of this process.
//
// An instance that has been silent for a period is gone; one that says it drains is gone at once. While this instance does
// not hear even itself, the silence says nothing about the others: all that were there stay, and have a period to speak
// again once it is over.
type Members struct {
	self   string
	period time.Duration // after which silence means absence
	count  atomic.Int64

	mu    sync.Mutex
	heard map[string]member
	echo  time.Duration // when this instance last heard itself
	guess int           // instances while nothing is known
}

type member struct {
	started int64
	at      time.Duration
}

// NewMembers begins with nobody heard: until one period has passed, at least guess instances count as live.
func NewMembers(self string, period time.Duration, guess int) *Members {
	m := &Members{self: self, period: period, heard: make(map[string]member), guess: max(1, guess)}
	m.count.Store(int64(m.guess))
	return m
}

// Live is the number of live instances of the region, this one included: one atomic load.
func (m *Members) Live() int { return int(m.count.Load()) }

// Names are the live instances in order, this one included.
func (m *Members) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := slices.Collect(maps.Keys(m.heard))
	if _, ok := m.heard[m.self]; !ok {
		names = append(names, m.self)
	}
	slices.Sort(names)
	return names
}

// Leads tells whether this instance is the first of the live ones by name. Two may both believe it for a while.
func (m *Members) Leads() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.heard {
		if name < m.self {
			return false
		}
	}
	return true
}

// Hear takes one heartbeat in.
func (m *Members) Hear(now time.Duration, h *wire.Heartbeat) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.heard[h.Instance]
	if ok && h.Started < known.started {
		return // of a former life
	}
	if h.Instance == m.self {
		m.hearSelf(now)
	}
	switch {
	case h.Draining && h.Instance != m.self:
		delete(m.heard, h.Instance)
	case ok || len(m.heard) < maxMembers:
		m.heard[h.Instance] = member{h.Started, now}
	}
	m.recount(now)
}

// hearSelf notes that heartbeats arrive. After a silence of its own, everybody has a period to speak again.
func (m *Members) hearSelf(now time.Duration) {
	if m.deaf(now) {
		for name, k := range m.heard {
			k.at = now
			m.heard[name] = k
		}
	}
	m.echo = now
}

// deaf tells that this instance has not heard itself for half a period.
func (m *Members) deaf(now time.Duration) bool { return now-m.echo > m.period/2 }

// Tick lets time pass.
func (m *Members) Tick(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.deaf(now) {
		for name, k := range m.heard {
			if now-k.at > m.period {
				delete(m.heard, name)
			}
		}
	}
	m.recount(now)
}

func (m *Members) recount(now time.Duration) {
	n := len(m.heard)
	if _, ok := m.heard[m.self]; !ok {
		n++
	}
	if m.echo == 0 || now < m.period {
		n = max(n, m.guess) // too early to know
	}
	m.count.Store(int64(n))
}
