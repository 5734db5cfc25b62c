package lease

import (
	"testing"
	"time"
)

// BenchmarkFenced is what a lease costs each decision: with leases one reading of the clock, without any next to nothing.
func BenchmarkFenced(b *testing.B) {
	for name, votes := range map[string]Votes{"leased": three(), "not leased": {}} {
		b.Run(name, func(b *testing.B) {
			g := NewGuard("eu", 1, Terms{Lease: time.Hour, Margin: time.Second, Renew: time.Second}, Clock)
			g.Deploy(votes)
			g.Incarnation(1)
			call, _ := g.Call()
			g.Hear(Answer{call.Renewal, "us"}, 1)
			for b.Loop() {
				if g.Fenced() {
					b.Fatal("fenced")
				}
			}
		})
	}
}

// Decisions must not allocate for a lease.
func TestFencedAllocatesNothing(t *testing.T) {
	g := NewGuard("eu", 1, DefaultTerms(), Clock)
	g.Deploy(three())
	if n := testing.AllocsPerRun(100, func() { g.Fenced() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
