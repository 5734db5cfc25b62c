package leader

import (
	"context"
	"sync"
)

// Memory is a Store within one process, for set-ups with a single rebalancer.
type Memory struct {
	mu  sync.Mutex
	row Row
}

// NewMemory begins above the terms of any earlier life: first must rise from life to life, as Unix milliseconds do.
func NewMemory(first int64) *Memory { return &Memory{row: Row{Term: first}} }

// Read answers the row.
func (m *Memory) Read(context.Context) (Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row, nil
}

// Take compares and sets.
func (m *Memory) Take(_ context.Context, seen Row, holder string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row != seen {
		return 0, ErrLost
	}
	m.row = Row{Term: seen.Term + 1, Holder: holder, Renewals: seen.Renewals + 1}
	return m.row.Term, nil
}

// Renew compares and raises.
func (m *Memory) Renew(_ context.Context, term int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Term != term || m.row.Holder == "" {
		return ErrLost
	}
	m.row.Renewals++
	return nil
}

// Resign leaves the row without a holder.
func (m *Memory) Resign(_ context.Context, term int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Term == term {
		m.row.Holder = ""
		m.row.Renewals++
	}
	return nil
}
