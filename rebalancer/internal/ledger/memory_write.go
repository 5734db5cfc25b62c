package ledger

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// PutParameter sets a parameter; a nil value goes back to the default. It is forgotten at the end of the process.
func (m *Memory) PutParameter(_ context.Context, e Edit, name string, value json.RawMessage) (d Diff[Parameter], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.mirror.Parameters[name]
	if ok {
		d.Before = &old
	}
	if err := e.check(old.Revision, ok); err != nil {
		return d, err
	}
	now := m.clock()
	if value != nil {
		m.parameterRevision++
		d.After = &Parameter{Name: name, Value: value, Reason: e.Reason, UpdatedAt: now, UpdatedBy: e.Actor,
			Revision: limit.Revision{Number: m.parameterRevision}}
	}
	if e.Dry {
		return d, nil
	}
	entry := Entry{Kind: "parameter", At: now, Operation: "update", Name: name, Actor: e.Actor, Reason: e.Reason, Before: mustJSON(d.Before), After: mustJSON(d.After)}
	if d.After != nil {
		m.mirror.Parameters[name] = *d.After
	} else {
		delete(m.mirror.Parameters, name)
		entry.Operation = "delete"
	}
	m.record(entry)
	return d, nil
}

// PutPins replaces the pins of a key.
func (m *Memory) PutPins(ctx context.Context, e Edit, key limit.Key, pins Pins, operation string) (d Diff[Pins], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := pins.check(m.mirror.Regions); err != nil {
		return d, err
	}
	s, ok := m.mirror.Splits[key]
	if d.Before = pinsOf(s); d.Before != nil {
		d.Before.Revision = pinRevision(m.lastPin(key))
	}
	if err := checkOf(e.Condition, d.Before, func(p *Pins) limit.Revision { return p.Revision }); err != nil {
		return d, err
	}
	pins.Revision = pinRevision(m.entries + 1)
	if len(pins.Shares) > 0 {
		d.After = &pins
	}
	if e.Dry {
		return d, nil
	}
	if !ok {
		s = Split{Key: key}
		for _, r := range m.mirror.Regions {
			s.Regions = append(s.Regions, RegionShare{Region: r.Name, Target: r.Published})
		}
	}
	now := m.clock()
	s.Regions = slices.Clone(s.Regions)
	s.By, s.Reason, s.At = e.Actor, e.Reason, now
	for i := range s.Regions {
		r := &s.Regions[i]
		r.Pin, r.PinExpires = nil, time.Time{}
		if share, pinned := pins.Shares[r.Region]; pinned {
			r.Pin, r.PinExpires = &share, pins.Expires
		}
	}
	m.mirror.Splits[key] = s
	m.record(Entry{Kind: "pin", At: now, Operation: operation, Tenant: key.Tenant, Route: key.Route, Actor: e.Actor, Reason: e.Reason,
		Before: mustJSON(d.Before), After: mustJSON(d.After)})
	return d, m.RequestCycle(ctx)
}

// lastPin is the entry of the history that tells of the last change of a key's pins.
func (m *Memory) lastPin(key limit.Key) int64 {
	for _, e := range slices.Backward(m.history) {
		if e.Kind == "pin" && e.Tenant == key.Tenant && e.Route == key.Route {
			return e.ID
		}
	}
	return 0
}

// The rest is the rules file's to say.

// PutRule is refused.
func (m *Memory) PutRule(context.Context, Edit, rulesfile.Rule) (d Diff[Rule], err error) {
	return d, ErrReadOnly
}

// DeleteRule is refused.
func (m *Memory) DeleteRule(context.Context, Edit, string, string) (d Diff[Rule], err error) {
	return d, ErrReadOnly
}

// ApplyRules is refused.
func (m *Memory) ApplyRules(context.Context, Edit, []rulesfile.Rule, bool) (p RulePlan, err error) {
	return p, ErrReadOnly
}

// PutTenant is refused.
func (m *Memory) PutTenant(context.Context, Edit, string, string) (d Diff[Tenant], err error) {
	return d, ErrReadOnly
}

// DeleteTenant is refused.
func (m *Memory) DeleteTenant(context.Context, Edit, string) (d Diff[Tenant], err error) {
	return d, ErrReadOnly
}

// CreateKey is refused.
func (m *Memory) CreateKey(context.Context, Edit, [32]byte, APIKey) (k APIKey, err error) {
	return k, ErrReadOnly
}

// RotateKey is refused.
func (m *Memory) RotateKey(context.Context, Edit, string, [32]byte, time.Duration) (k APIKey, err error) {
	return k, ErrReadOnly
}

// RevokeKey is refused.
func (m *Memory) RevokeKey(context.Context, Edit, string) (d Diff[APIKey], err error) {
	return d, ErrReadOnly
}

// PutRegions is refused.
func (m *Memory) PutRegions(context.Context, Edit, map[string]RegionChange) (d Diff[[]Region], err error) {
	return d, ErrReadOnly
}

// PutRegion is refused.
func (m *Memory) PutRegion(context.Context, Edit, string, RegionChange) (d Diff[Region], err error) {
	return d, ErrReadOnly
}
