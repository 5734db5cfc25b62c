package snapshot_test

import (
	"testing"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// TestFloorOfAMovedKey: of a key that has moved a region counts on no more than the floor that it kept when it gave, whatever the
// configuration has become since; on nothing while that is not known.
func TestFloorOfAMovedKey(t *testing.T) {
	key := limit.Key{Tenant: "shop-a", Route: "orders"}
	regions := func(floor limit.Share, n int64) func(*snapshot.Builder) {
		return func(b *snapshot.Builder) {
			if err := b.SetRegions([]snapshot.Region{{Name: "eu", Base: 700_000, Floor: floor}, {Name: "us", Base: 300_000}}, rev(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := build(t, eu(t), regions(35_000, 5))
	for _, step := range []struct {
		name string
		edit func(*snapshot.Builder)
		want limit.Share
	}{
		{"never moved", func(*snapshot.Builder) {}, 35_000},
		{"a floor without a move", func(b *snapshot.Builder) { b.MarkFloor(key, 10_000) }, 35_000},
		{"moved, and the floor not known", func(b *snapshot.Builder) { b.MarkMoved(key, 700_000) }, 0},
		{"known", func(b *snapshot.Builder) { b.MarkFloor(key, 35_000) }, 35_000},
		{"the configured floor raised", regions(140_000, 6), 35_000},
		{"a higher one said later", func(b *snapshot.Builder) { b.MarkFloor(key, 140_000) }, 35_000},
		{"the configured floor lowered", regions(7_000, 7), 7_000},
		{"raised again", regions(70_000, 8), 35_000},
		{"a lower one said", func(b *snapshot.Builder) { b.MarkFloor(key, 21_500) }, 21_000}, // in thousandths of the base, rounded down
		{"nothing", func(b *snapshot.Builder) { b.MarkFloor(key, 0) }, 0},
	} {
		s = build(t, s, step.edit)
		if m := s.Lookup(key.Tenant, key.Route); m.Floor != step.want {
			t.Errorf("%s: floor %d, want %d", step.name, m.Floor, step.want)
		}
	}
	if m := s.Lookup("shop-a", "items"); m.Floor != 70_000 {
		t.Errorf("another key: floor %d", m.Floor)
	}
	if m := s.Lookup(key.Tenant, key.Route); !m.Moved || m.Base != 700_000 {
		t.Errorf("match %+v", m)
	}
}
