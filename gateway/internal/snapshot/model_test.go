package snapshot_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// word is one thing that a ledger says.
type word struct {
	kind          string // rule, delete, plan
	tenant, route string
	plan          string
	capacity      int64
	at            limit.Revision
}

// model answers look-ups from the words themselves, by DESIGN's order of precedence and nothing else.
type model struct {
	rules map[[2]string]word
	plans map[string]word
}

func newModel() *model { return &model{rules: map[[2]string]word{}, plans: map[string]word{}} }

func (m *model) hear(w word) {
	if w.kind == "plan" {
		if old, ok := m.plans[w.tenant]; !ok || w.at.Newer(old.at) {
			m.plans[w.tenant] = w
		}
		return
	}
	key := [2]string{w.tenant, w.route}
	if old, ok := m.rules[key]; !ok || w.at.Newer(old.at) {
		m.rules[key] = w
	}
}

func (m *model) lookup(tenant, route string, regions limit.Revision) (capacity int64, at limit.Revision) {
	at = regions
	try := func(tenant, route string) bool {
		w, ok := m.rules[[2]string{tenant, route}]
		if ok {
			at = at.Max(w.at)
		}
		capacity = w.capacity
		return ok && w.kind == "rule"
	}
	if try(tenant, route) || try(tenant, "*") {
		return capacity, at
	}
	if p, ok := m.plans[tenant]; ok {
		at = at.Max(p.at)
		if p.plan != "" && (try("@"+p.plan, route) || try("@"+p.plan, "*")) {
			return capacity, at
		}
	}
	if try("*", route) || try("*", "*") {
		return capacity, at
	}
	return limit.DefaultRule.Capacity, at
}

// Any sequence of words, in any order and repetition, over any number of snapshots, reads as the model does; snapshots made
// on the way stay as they were.
func TestSnapshotReadsAsTheWordsSay(t *testing.T) {
	names := func(prefix string, n int, more ...string) *rapid.Generator[string] {
		all := more
		for i := range n {
			all = append(all, fmt.Sprintf("%s%d", prefix, i))
		}
		return rapid.SampledFrom(all)
	}
	tenants, routes, plans := names("t", 40), names("r", 25), names("p", 2, "")
	scopes := names("t", 40, "*", "@p0", "@p1")
	words := rapid.Custom(func(t *rapid.T) word {
		w := word{
			kind: rapid.SampledFrom([]string{"rule", "rule", "delete", "plan"}).Draw(t, "kind"),
			at:   limit.Revision{Epoch: rapid.Int64Range(1, 2).Draw(t, "epoch"), Number: rapid.Int64Range(1, 30).Draw(t, "number")},
		}
		if w.kind == "plan" {
			w.tenant, w.plan = tenants.Draw(t, "tenant"), plans.Draw(t, "plan")
			return w
		}
		w.tenant = scopes.Draw(t, "scope")
		w.route = names("r", 25, "*").Draw(t, "route")
		w.capacity = rapid.Int64Range(1, 1000).Draw(t, "capacity")
		return w
	})
	rapid.Check(t, func(t *rapid.T) {
		m, s := newModel(), eu2(t)
		var before *snapshot.Snapshot
		var was int64
		probe := func() (string, string) { return tenants.Draw(t, "probe tenant"), routes.Draw(t, "probe route") }
		keptTenant, keptRoute := probe()
		for range rapid.IntRange(1, 6).Draw(t, "snapshots") {
			before, was = s, s.Lookup(keptTenant, keptRoute).Rule.Capacity
			b := s.Edit()
			for _, w := range rapid.SliceOfN(words, 0, 80).Draw(t, "words") {
				m.hear(w)
				switch w.kind {
				case "rule":
					b.SetRule(w.tenant, w.route, &limit.Rule{Capacity: w.capacity, Refill: 1, PeriodSeconds: 1, Revision: w.at})
				case "delete":
					b.DeleteRule(w.tenant, w.route, w.at)
				case "plan":
					b.SetPlan(w.tenant, w.plan, w.at)
				}
			}
			s = b.Build()
			if got := before.Lookup(keptTenant, keptRoute).Rule.Capacity; got != was {
				t.Fatalf("an older snapshot changed: %s/%s from %d to %d", keptTenant, keptRoute, was, got)
			}
			for range 10 {
				tenant, route := probe()
				got := s.Lookup(tenant, route)
				capacity, at := m.lookup(tenant, route, s.RegionsRevision())
				steps := s.Explain(tenant, route)
				if last := steps[len(steps)-1]; last.Rule != got.Rule || last.Scope != got.Scope {
					t.Fatalf("%s/%s: explained by %s, matched by %s", tenant, route, last.Scope, got.Scope)
				}
				if got.Rule.Capacity != capacity || got.Revision != at {
					t.Fatalf("%s/%s: capacity %d at %s by %s, want %d at %s", tenant, route, got.Rule.Capacity, got.Revision, got.Scope, capacity, at)
				}
			}
		}
		rules := 0
		for _, w := range m.rules {
			if w.kind == "rule" {
				rules++
			}
		}
		if got := s.Counts().Rules; got != rules {
			t.Fatalf("%d rules counted, want %d", got, rules)
		}
	})
}

func eu2(t *rapid.T) *snapshot.Snapshot {
	b := snapshot.Empty("eu").Edit()
	if err := b.SetRegions([]snapshot.Region{{Name: "eu", Base: limit.Whole}}, limit.Revision{Epoch: 1, Number: 5}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}
