package snapshot

import (
	"sync"
	"sync/atomic"
)

// Holder is the one pointer between the planes. Load never waits; writers take turns.
type Holder struct {
	current atomic.Pointer[Snapshot]
	mu      sync.Mutex
	homes   bool
	watches []func(*Snapshot)
}

// NewHolder holds the empty snapshot of region.
func NewHolder(region string) *Holder {
	h := new(Holder)
	h.current.Store(Empty(region))
	return h
}

// Load is the newest snapshot, never nil.
func (h *Holder) Load() *Snapshot { return h.current.Load() }

// Update publishes the snapshot that edit makes of the newest one. An error publishes nothing.
func (h *Holder) Update(edit func(*Builder) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.current.Load().Edit()
	if err := edit(b); err != nil {
		return err
	}
	h.publish(b.Build())
	return nil
}

// Replace publishes what build makes beside the newest snapshot: for a whole load, which starts from Empty and may take
// over what it must keep. An error publishes nothing.
func (h *Holder) Replace(build func(old *Snapshot) (*Snapshot, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	next, err := build(h.current.Load())
	if err != nil {
		return err
	}
	h.publish(next)
	return nil
}

// ConsumeAtHome says, for this snapshot and all later ones, that tiny limits are consumed at their home region from
// everywhere: Lookup gives their whole base share to that one. All regions of a deployment must say so, or none.
func (h *Holder) ConsumeAtHome() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.homes = true
	h.publish(h.current.Load().Edit().Build())
}

// Watch has f told of the newest snapshot now and of every later one before anybody can load it. f must neither wait nor call
// the holder.
func (h *Holder) Watch(f func(*Snapshot)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches = append(h.watches, f)
	f(h.current.Load())
}

// publish makes next, which nobody else has seen yet, the newest snapshot. The caller holds mu.
func (h *Holder) publish(next *Snapshot) {
	next.homes = h.homes
	for _, f := range h.watches {
		f(next)
	}
	h.current.Store(next)
}
