package agent

import (
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	const perSecond, burst = 2, 6
	now := time.Unix(1_800_000_000, 0)
	var b budget
	spend := func(messages float64) bool {
		b.refill(now, perSecond, burst)
		return b.spend(messages)
	}
	for i := range 3 {
		if !spend(transferMessages) {
			t.Fatalf("transfer %d refused within the burst", i)
		}
	}
	if spend(askMessages) {
		t.Error("an ask passed with nothing left")
	}
	now = now.Add(500 * time.Millisecond)
	if spend(transferMessages) {
		t.Error("a transfer passed for one message that had come back")
	}
	if !spend(askMessages) {
		t.Error("an ask was refused though one message had come back")
	}
	// What must be sent is sent, and paid for by what comes later.
	b.owe(transferMessages)
	now = now.Add(time.Second)
	if spend(askMessages) {
		t.Error("an ask passed before what was owed was paid")
	}
	now = now.Add(500 * time.Millisecond)
	if !spend(askMessages) {
		t.Error("an ask was refused after what was owed was paid")
	}
	for range 100 {
		b.owe(transferMessages)
	}
	if b.left != -burst {
		t.Errorf("owes %v, at most a burst", -b.left)
	}
}
