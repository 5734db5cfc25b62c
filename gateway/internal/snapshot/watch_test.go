package snapshot

import "testing"

// TestWatchersKnowFirst: whoever watches is told of a snapshot before anybody can decide by it.
func TestWatchersKnowFirst(t *testing.T) {
	h := NewHolder("eu")
	var told []bool
	h.Watch(func(s *Snapshot) {
		told = append(told, s.Shadow())
		if len(told) > 1 && h.Load() == s {
			t.Error("the snapshot was in use before the watcher knew of it")
		}
	})
	if err := h.Update(func(b *Builder) error { b.SetShadow(true); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || told[0] || !told[1] || !h.Load().Shadow() {
		t.Errorf("told %v", told)
	}
}
