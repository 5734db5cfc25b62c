package snapshot_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

func rev(n int64) limit.Revision { return limit.Revision{Epoch: 1, Number: n} }

func rule(n, capacity int64) *limit.Rule {
	return &limit.Rule{Capacity: capacity, Refill: 10, PeriodSeconds: 1, Revision: rev(n)}
}

func build(t testing.TB, from *snapshot.Snapshot, edit func(*snapshot.Builder)) *snapshot.Snapshot {
	t.Helper()
	b := from.Edit()
	edit(b)
	return b.Build()
}

func eu(t testing.TB) *snapshot.Snapshot {
	return build(t, snapshot.Empty("eu"), func(b *snapshot.Builder) {
		err := b.SetRegions([]snapshot.Region{{Name: "us", Base: 300_000}, {Name: "eu", Base: 700_000}}, rev(1))
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestMostSpecificRuleWins(t *testing.T) {
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetPlan("shop-a", "gold", rev(2))
		b.SetPlan("shop-b", "gold", rev(2))
		b.SetRule("shop-a", "orders", rule(3, 1))
		b.SetRule("shop-a", "*", rule(4, 2))
		b.SetRule("@gold", "orders", rule(5, 3))
		b.SetRule("@gold", "*", rule(6, 4))
		b.SetRule("*", "orders", rule(7, 5))
		b.SetRule("*", "@tenant", rule(9, 7))
	})
	all := build(t, s, func(b *snapshot.Builder) { b.SetRule("*", "*", rule(8, 6)) })
	for _, c := range []struct {
		in            *snapshot.Snapshot
		tenant, route string
		capacity      int64
		scope         string
	}{
		{s, "shop-a", "orders", 1, snapshot.ScopeTenantRoute},
		{s, "shop-a", "items", 2, snapshot.ScopeTenant},
		{s, "shop-b", "orders", 3, snapshot.ScopePlanRoute},
		{s, "shop-b", "items", 4, snapshot.ScopePlan},
		{s, "shop-c", "orders", 5, snapshot.ScopeRoute},
		{s, "shop-c", "items", 20, snapshot.ScopeDefault},
		{all, "shop-c", "items", 6, snapshot.ScopeEverybody},
		{all, "@gold", "orders", 5, snapshot.ScopeRoute},
		{all, "shop-a", "@tenant", 7, snapshot.ScopeRoute},
	} {
		m := c.in.Lookup(c.tenant, c.route)
		if m.Rule.Capacity != c.capacity || m.Scope != c.scope || m.Base != 700_000 {
			t.Errorf("%s/%s: capacity %d by %s base %d, want %d by %s", c.tenant, c.route, m.Rule.Capacity, m.Scope, m.Base, c.capacity, c.scope)
		}
	}
}

func TestNoWildcardLimitsTheTenantAsAWhole(t *testing.T) {
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetRule("shop-a", "*", rule(2, 1))
		b.SetRule("*", "*", rule(3, 1))
	})
	if m := s.Lookup("shop-a", limit.TenantRoute); m.Rule != nil {
		t.Errorf("rule %+v by %s, want none", m.Rule, m.Scope)
	}
}

// Deleting a rule hands its keys to the next match under a newer revision than both (request-path 83).
func TestDeletedRuleHandsOver(t *testing.T) {
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetRule("*", "orders", rule(2, 5))
		b.SetRule("shop-a", "orders", rule(3, 1))
	})
	s = build(t, s, func(b *snapshot.Builder) { b.DeleteRule("shop-a", "orders", rev(4)) })
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 5 || m.Revision != rev(4) {
		t.Errorf("after the deletion: capacity %d at %s, want 5 at 1.4", m.Rule.Capacity, m.Revision)
	}
	s = build(t, s, func(b *snapshot.Builder) { b.SetRule("shop-a", "orders", rule(5, 9)) })
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 9 || m.Revision != rev(5) {
		t.Errorf("created again: capacity %d at %s, want 9 at 1.5", m.Rule.Capacity, m.Revision)
	}
}

func TestPlanChangeIsARevisionOfTheKey(t *testing.T) {
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetRule("@gold", "*", rule(2, 5))
		b.SetRule("@free", "*", rule(3, 1))
		b.SetPlan("shop-a", "free", rev(4))
	})
	s = build(t, s, func(b *snapshot.Builder) { b.SetPlan("shop-a", "gold", rev(5)) })
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 5 || m.Revision != rev(5) {
		t.Errorf("capacity %d at %s, want 5 at 1.5", m.Rule.Capacity, m.Revision)
	}
}

// Version 8, then 7: the older is ignored (request-path 86).
func TestOldWordsAreIgnored(t *testing.T) {
	hash := sha256.Sum256([]byte("k"))
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetRule("shop-a", "orders", rule(8, 8))
		b.SetRule("shop-a", "orders", rule(7, 7))
		b.SetPlan("shop-a", "gold", rev(8))
		b.SetPlan("shop-a", "free", rev(7))
		b.SetKey(hash, snapshot.APIKey{Tenant: "shop-a", Enabled: false, Revision: rev(8)})
		b.SetKey(hash, snapshot.APIKey{Tenant: "shop-a", Enabled: true, Revision: rev(7)})
		b.DeleteRule("shop-a", "orders", rev(6))
	})
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 8 {
		t.Errorf("capacity %d, want 8", m.Rule.Capacity)
	}
	if _, ok := s.Tenant(hash, time.Unix(0, 0)); ok {
		t.Error("the disabled key is enabled again by an older word")
	}
	if s.Revision() != rev(8) {
		t.Errorf("revision %s, want 1.8", s.Revision())
	}
	later := limit.Rule{Capacity: 3, Refill: 1, PeriodSeconds: 1, Revision: limit.Revision{Epoch: 2, Number: 1}}
	s = build(t, s, func(b *snapshot.Builder) { b.SetRule("shop-a", "orders", &later) })
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 3 {
		t.Error("a rule of a later epoch must win over any number of an earlier one")
	}
}

func TestSnapshotsDoNotChange(t *testing.T) {
	old := build(t, eu(t), func(b *snapshot.Builder) { b.SetRule("shop-a", "orders", rule(2, 5)) })
	build(t, old, func(b *snapshot.Builder) {
		b.SetRule("shop-a", "orders", rule(3, 6))
		b.SetRule("shop-a", "items", rule(3, 6))
		b.SetRule("shop-b", "items", rule(3, 6))
		b.SetRule("*", "items", rule(3, 6))
		b.MarkMoved(limit.Key{Tenant: "shop-a", Route: "orders"}, 1)
	})
	if m := old.Lookup("shop-a", "orders"); m.Rule.Capacity != 5 || m.Moved {
		t.Errorf("the older snapshot reads %+v", m)
	}
	if m := old.Lookup("shop-b", "items"); m.Scope != snapshot.ScopeDefault {
		t.Errorf("the older snapshot matches %s", m.Scope)
	}
}

func TestMovedBelongsToTheKey(t *testing.T) {
	key := limit.Key{Tenant: "shop-a", Route: "orders"}
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.MarkMoved(key, 500_000)
		b.MarkMoved(key, 600_000)
		b.SetRule("*", "*", rule(2, 5))
	})
	if m := s.Lookup("shop-a", "orders"); !m.Moved || m.Base != 500_000 || m.Rule.Capacity != 5 {
		t.Errorf("match %+v, want moved under everybody's rule", m)
	}
	if m := s.Lookup("shop-a", "items"); m.Moved {
		t.Error("another route of the tenant has not moved")
	}
	if n := s.Counts().Moved; n != 1 {
		t.Errorf("%d moved, want 1", n)
	}
	s = build(t, s, func(b *snapshot.Builder) { b.SetRule("shop-a", "orders", rule(3, 1)) })
	if m := s.Lookup("shop-a", "orders"); !m.Moved || m.Rule.Capacity != 1 {
		t.Errorf("match %+v, want moved under its own rule", m)
	}
}

func TestTenantByCredential(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	good, off, old := sha256.Sum256([]byte("good")), sha256.Sum256([]byte("off")), sha256.Sum256([]byte("old"))
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetKey(good, snapshot.APIKey{Tenant: "shop-a", Enabled: true, ExpiresAt: now.Add(time.Second), Revision: rev(2)})
		b.SetKey(off, snapshot.APIKey{Tenant: "shop-a", Revision: rev(2)})
		b.SetKey(old, snapshot.APIKey{Tenant: "shop-a", Enabled: true, ExpiresAt: now, Revision: rev(2)})
	})
	if id, ok := s.Tenant(good, now); !ok || id != "shop-a" {
		t.Errorf("good key: %q %v", id, ok)
	}
	for name, h := range map[string][32]byte{"disabled": off, "expired": old, "unknown": sha256.Sum256([]byte("x"))} {
		if id, ok := s.Tenant(h, now); ok {
			t.Errorf("%s key is tenant %q", name, id)
		}
	}
}

func TestRegionsMustAddUpAndHoldOurs(t *testing.T) {
	for name, regions := range map[string][]snapshot.Region{
		"none":  nil,
		"above": {{Name: "eu", Base: 700_000}, {Name: "us", Base: 400_000}},
		"twice": {{Name: "eu", Base: 500_000}, {Name: "eu", Base: 500_000}},
		"ours":  {{Name: "us", Base: 1_000_000}},
		"floor": {{Name: "eu", Base: 1_000_000, Floor: -1}},
	} {
		if err := snapshot.Empty("eu").Edit().SetRegions(regions, rev(1)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestExpiredRuleHandsOver(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	temporary := *rule(3, 9)
	temporary.ExpiresAt = now.Add(time.Minute)
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetRule("*", "*", rule(2, 5))
		b.SetRule("shop-a", "orders", &temporary)
		b.Expire(now)
	})
	if next, ok := s.NextExpiry(); !ok || !next.Equal(temporary.ExpiresAt) {
		t.Fatalf("next expiry %v %v", next, ok)
	}
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 9 {
		t.Errorf("before the end: capacity %d", m.Rule.Capacity)
	}
	s = build(t, s, func(b *snapshot.Builder) { b.Expire(temporary.ExpiresAt) })
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 5 || m.Revision != rev(3) {
		t.Errorf("after the end: capacity %d at %s, want 5 at 1.3", m.Rule.Capacity, m.Revision)
	}
	if _, ok := s.NextExpiry(); ok {
		t.Error("nothing is left to expire")
	}
	s = build(t, s, func(b *snapshot.Builder) { b.SetRule("shop-a", "orders", &temporary) })
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 5 {
		t.Error("the expired rule came back by being repeated")
	}
}

// A rule that was replaced before its end does not take its successor away.
func TestExpiryOfAReplacedRule(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	temporary := *rule(3, 9)
	temporary.ExpiresAt = now
	s := build(t, eu(t), func(b *snapshot.Builder) {
		b.SetRule("shop-a", "orders", &temporary)
		b.SetRule("shop-a", "orders", rule(4, 7))
		b.Expire(now)
	})
	if m := s.Lookup("shop-a", "orders"); m.Rule.Capacity != 7 {
		t.Errorf("capacity %d, want 7", m.Rule.Capacity)
	}
}

// Late words are late whatever else the same increment says of the tenant, also of its seventh rule and later ones.
func TestLateWordsOnManyRulesAreIgnored(t *testing.T) {
	routes := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	s := build(t, eu(t), func(b *snapshot.Builder) {
		for _, r := range routes {
			b.SetRule("shop-a", r, rule(9, 9))
			b.MarkMoved(limit.Key{Tenant: "shop-a", Route: r}, 500_000)
		}
	})
	late := build(t, s, func(b *snapshot.Builder) {
		b.SetPlan("shop-a", "gold", rev(10))
		for _, r := range routes {
			b.MarkMoved(limit.Key{Tenant: "shop-a", Route: r}, 1)
		}
	})
	late = build(t, late, func(b *snapshot.Builder) {
		b.SetPlan("shop-a", "silver", rev(11))
		for i := range routes {
			b.SetRule("shop-a", routes[len(routes)-1-i], rule(3, 3))
			b.SetPlan("shop-a", "silver", rev(11))
		}
	})
	for _, r := range routes {
		if m := late.Lookup("shop-a", r); m.Rule.Capacity != 9 || m.Base != 500_000 {
			t.Errorf("%s: capacity %d, base %d: a late word has replaced a newer one", r, m.Rule.Capacity, m.Base)
		}
	}
	if c := late.Counts(); c.Moved != len(routes) || c.Rules != len(routes) {
		t.Errorf("counts %+v, want %d moved and as many rules", c, len(routes))
	}
}
