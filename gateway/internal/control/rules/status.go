package rules

import (
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Status is how well the snapshot follows its source.
type Status struct {
	// Source is the kind of source.
	Source string
	// Loaded tells that there is a snapshot to serve by.
	Loaded bool
	// Stale tells that it was read from disk, and that the source has not been reached since the start.
	Stale bool
	// Revision is in force, Announced the newest anybody has spoken of.
	Revision, Announced limit.Revision
	// ConfirmedAt is when the source was last known to have nothing newer; of a stale snapshot, when it was saved.
	ConfirmedAt time.Time
	// Faults are the rows refused since the start.
	Faults int
	// Err is why the last read failed; nil after a good one.
	Err error
}

// Status is how things stand.
func (l *Loader) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Announced = l.announced.Max(s.Revision)
	return s
}

func (l *Loader) confirmedAt() time.Time { return l.Status().ConfirmedAt }
