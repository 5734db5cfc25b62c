package ledger

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// memoryDemand is how long Memory remembers demand.
const memoryDemand = 2 * time.Hour

// RecordDemand keeps one minute.
func (m *Memory) RecordDemand(_ context.Context, _ int64, points []DemandPoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := 0
	for old < len(m.demand) && m.clock().Sub(m.demand[old].At) > memoryDemand {
		old++
	}
	m.demand = append(m.demand[old:], points...)
	return nil
}

// Demand of one key since a moment, oldest first; of all recorded keys where key is zero. There are no hours.
func (m *Memory) Demand(_ context.Context, key limit.Key, since time.Time, _ time.Duration) ([]DemandPoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var points []DemandPoint
	for _, d := range m.demand {
		if !d.At.Before(since) && (key == limit.Key{} || d.Tenant == key.Tenant && d.Route == key.Route) {
			points = append(points, d)
		}
	}
	return points, nil
}

// RollUpDemand has nothing to do.
func (m *Memory) RollUpDemand(context.Context, int64, time.Duration) error { return nil }

// EndExpired has nothing to do: an expired rule of a file no longer matches, and the file is people's.
func (m *Memory) EndExpired(context.Context, int64) (int, error) { return 0, nil }

// Age has nothing to do: the history is bounded.
func (m *Memory) Age(context.Context, int64, time.Duration) (int64, error) { return 0, nil }
