package admission

import (
	"testing"
	"time"
)

func TestIdealCountsRefusalsOfSecondsWithoutItsOwn(t *testing.T) {
	b := NewIdeal(3, 1)
	ask := func(n int, at time.Duration, refused bool) {
		for range n {
			b.Asked(1, at, refused)
		}
	}
	ask(2, 100*time.Millisecond, true) // two of three tokens: the refusals were needless
	if got := b.Needless(); got != 2 {
		t.Fatalf("%d needless, want 2", got)
	}
	ask(5, 1100*time.Millisecond, true) // more than there is: the ideal bucket refuses too
	if got := b.Needless(); got != 2 {
		t.Fatalf("%d needless, want still 2", got)
	}
	ask(1, 9*time.Second, true)
	ask(1, 8*time.Second, false) // late news
	if got := b.Needless(); got != 3 {
		t.Fatalf("%d needless, want 3", got)
	}
}
