package ledger

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// Memory is a ledger for set-ups without PostgreSQL: regions, rules and tenants come from a rules file that it reads
// again when it changes; splits live as long as the process. It is safe for use by many goroutines.
type Memory struct {
	path  string
	clock func() time.Time

	mu                sync.Mutex
	modified          time.Time
	size              int64
	mirror            Mirror
	term              int64
	history           []Entry
	entries           int64 // ever recorded
	parameterRevision int64
	demand            []DemandPoint
	fault             error
	requests          chan struct{}
	leases            map[string]RegionLease
}

// memoryHistory bounds what Memory remembers of decisions.
const memoryHistory = 10_000

// NewMemory reads the rules file at path. clock is time.Now outside tests.
func NewMemory(path string, clock func() time.Time) (*Memory, error) {
	m := &Memory{path: path, clock: clock, requests: make(chan struct{}, 1), mirror: Mirror{Parameters: map[string]Parameter{}, Splits: map[limit.Key]Split{}}}
	if err := m.reload(); err != nil {
		return nil, err
	}
	return m, nil
}

// Fault is why the newest form of the rules file is not used, nil if it is.
func (m *Memory) Fault() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fault
}

// Refresh copies what is known into into. A rules file with a fault leaves the last good one in force.
func (m *Memory) Refresh(_ context.Context, into *Mirror) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = m.reload()
	*into = m.mirror
	into.Parameters = maps.Clone(m.mirror.Parameters)
	into.Splits = maps.Clone(m.mirror.Splits)
	return nil
}

func (m *Memory) reload() error {
	info, err := os.Stat(m.path)
	if err != nil {
		return fmt.Errorf("rules file: %w", err)
	}
	if info.ModTime().Equal(m.modified) && info.Size() == m.size {
		return m.fault
	}
	file, err := rulesfile.Load(m.path)
	if err != nil {
		m.modified, m.size = info.ModTime(), info.Size()
		return err
	}
	if len(file.Regions) == 0 {
		return fmt.Errorf("%s: regions: missing: the rebalancer divides limits among them", m.path)
	}
	revision := limit.Revision{Number: file.Revision} // as gateways count a file
	if m.mirror.Rules != nil && m.mirror.Revision.Newer(revision) {
		return fmt.Errorf("%s: revision: %d is older than the %d in use", m.path, file.Revision, m.mirror.Revision.Number)
	}
	m.modified, m.size = info.ModTime(), info.Size()
	m.mirror.Revision, m.mirror.Regions, m.mirror.Rules = revision, regionsOf(file, revision), rulesOf(file, revision)
	return nil
}

func regionsOf(file *rulesfile.File, at limit.Revision) []Region {
	regions := make([]Region, 0, len(file.Regions))
	for _, name := range slices.Sorted(maps.Keys(file.Regions)) {
		f := file.Regions[name]
		r := Region{Name: name, Base: limit.Share(f.Base), Published: limit.Share(f.Base), Domain: f.Domain, State: RegionActive, Revision: at}
		if f.Floor != nil {
			r.Floor = limit.Share(*f.Floor)
		}
		regions = append(regions, r)
	}
	return regions
}

func rulesOf(file *rulesfile.File, at limit.Revision) *Rules {
	rules := NewRules()
	if file.Default != nil {
		rules.Default = file.Default.Limit(at)
	}
	for i := range file.Rules {
		rules.Set(file.Rules[i].Tenant, file.Rules[i].Route, file.Rules[i].Limit(at))
	}
	for _, t := range file.Tenants {
		rules.SetPlan(t.ID, t.Plan)
	}
	return rules
}

// Commit keeps a decision. Terms only rise.
func (m *Memory) Commit(_ context.Context, d Decision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.Term < m.term {
		return fmt.Errorf("commit splits: %w", ErrFenced)
	}
	m.term = d.Term
	now := m.clock()
	m.mirror.Apply(&d, now)
	for i := range d.Changes {
		c := &d.Changes[i]
		m.record(Entry{Kind: "split", At: now, Operation: "plan", Tenant: c.Key.Tenant, Route: c.Key.Route,
			Actor: "rebalancer " + d.Holder, Reason: c.Reason, Term: d.Term, Cycle: d.Cycle,
			Before: []byte(sharesJSON(d.Regions, c.Before)), After: []byte(sharesJSON(d.Regions, c.After))})
	}
	return nil
}

// record appends to the history, forgetting the oldest tenth when it is full.
func (m *Memory) record(e Entry) {
	if len(m.history) >= memoryHistory {
		m.history = slices.Delete(m.history, 0, memoryHistory/10)
	}
	m.entries++
	e.ID = m.entries
	m.history = append(m.history, e)
}

// RequestCycle asks the one rebalancer there is.
func (m *Memory) RequestCycle(context.Context) error {
	select {
	case m.requests <- struct{}{}:
	default: // one is waiting already
	}
	return nil
}

// Listen calls changed with the revision of the rules file once at the start and whenever it has risen, and requested
// whenever somebody asks for a cycle, until ctx ends.
func (m *Memory) Listen(ctx context.Context, changed func(limit.Revision), requested func()) error {
	var last limit.Revision
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for first := true; ; first = false {
		var mirror Mirror
		if err := m.Refresh(ctx, &mirror); err != nil {
			return err
		}
		if first || mirror.Revision.Newer(last) {
			last = mirror.Revision
			changed(last)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.requests:
			requested()
		case <-tick.C:
		}
	}
}

// Publish has nothing to do: gateways that share a rules file take its regions from it, all at once.
func (m *Memory) Publish(context.Context, int64, string, []Region, map[string]limit.Share) error {
	return nil
}
