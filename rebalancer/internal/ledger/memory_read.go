package ledger

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// Rules in the order of tenant and route.
func (m *Memory) Rules(_ context.Context, f Filter) ([]Rule, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Rule
	for tenant, routes := range m.mirror.Rules.rules {
		for route, rule := range routes {
			if (f.Tenant == "" || f.Tenant == tenant) && (f.Route == "" || f.Route == route) && holds(f.Part, tenant, route) &&
				slices.Compare([]string{tenant, route}, f.After[:]) > 0 {
				list = append(list, Rule{Rule: rulesfile.Of(tenant, route, rule), Revision: rule.Revision, UpdatedBy: m.path})
			}
		}
	}
	slices.SortFunc(list, func(a, b Rule) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Route, b.Route)) })
	return list[:min(len(list), f.Limit)], nil
}

func holds(part string, names ...string) bool {
	return part == "" || slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, part) })
}

// RuleOf is the rule written for exactly (tenant, route); ErrNotFound where there is none.
func (m *Memory) RuleOf(_ context.Context, tenant, route string) (Rule, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rule := m.mirror.Rules.rules[tenant][route]
	if rule == nil {
		return Rule{}, ErrNotFound
	}
	return Rule{Rule: rulesfile.Of(tenant, route, rule), Revision: rule.Revision, UpdatedBy: m.path}, nil
}

// Tenants that have a plan, in the order of their ids.
func (m *Memory) Tenants(_ context.Context, f Filter, plan string) ([]Tenant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Tenant
	for id, p := range m.mirror.Rules.plans {
		if (f.Tenant == "" || f.Tenant == id) && (plan == "" || plan == p) && holds(f.Part, id) && id > f.After[0] {
			list = append(list, Tenant{ID: id, Plan: p, UpdatedBy: m.path, Revision: m.mirror.Revision})
		}
	}
	slices.SortFunc(list, func(a, b Tenant) int { return cmp.Compare(a.ID, b.ID) })
	return list[:min(len(list), f.Limit)], nil
}

// Keys are not kept: gateways read them from the rules file.
func (m *Memory) Keys(context.Context, Filter) ([]APIKey, error) { return nil, nil }

// ParameterRows are the parameters that have been set since the start.
func (m *Memory) ParameterRows(context.Context) ([]Parameter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Parameter
	for _, p := range m.mirror.Parameters {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Parameter) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// SplitOf is the split of one key; ErrNotFound where it has none.
func (m *Memory) SplitOf(_ context.Context, key limit.Key) (Split, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.mirror.Splits[key]
	if !ok {
		return Split{}, ErrNotFound
	}
	return s, nil
}

// History is newest first.
func (m *Memory) History(_ context.Context, f HistoryFilter) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Entry
	for i := len(m.history) - 1; i >= 0 && len(list) < f.Limit; i-- {
		e := &m.history[i]
		if (len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) && (f.Tenant == "" || f.Tenant == e.Tenant) &&
			(f.Route == "" || f.Route == e.Route) && (f.Name == "" || f.Name == e.Name) && (f.Actor == "" || f.Actor == e.Actor) &&
			(f.Before == 0 || e.ID < f.Before) {
			list = append(list, *e)
		}
	}
	return list, nil
}

// HistoryEntry is one of them; ErrNotFound where it has been forgotten or never was.
func (m *Memory) HistoryEntry(_ context.Context, id int64) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.history {
		if m.history[i].ID == id {
			return m.history[i], nil
		}
	}
	return Entry{}, ErrNotFound
}
