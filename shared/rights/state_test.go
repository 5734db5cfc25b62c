package rights

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// TestMoveThenLoan tells the story of one key between two regions: share moves, its clipped tokens ride along, a loan
// partly fits, and every acknowledgement settles what it should.
func TestMoveThenLoan(t *testing.T) {
	t0 := time.UnixMilli(1_760_256_000_000)
	rule := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	eu := New(bucket.NumbersOf(rule, 700_000), 35_000, 1, t0)
	us := New(bucket.NumbersOf(rule, 300_000), 15_000, 1, t0)
	eu.Open(map[string]int64{"us": 1})
	us.Open(map[string]int64{"eu": 1})

	if got := eu.Give(t0, "us", 500_000, 0); got != 500_000 {
		t.Fatalf("Give = %d, want 500000", got)
	}
	if eu.Share != 200_000 || eu.Tokens != 40 {
		t.Fatalf("after giving eu has share %d, %g tokens", eu.Share, eu.Tokens)
	}
	row, ok := eu.Row("eu", "us")
	if !ok || row.Sent != (Sent{Share: 500_000, Ride: 100_000}) {
		t.Fatalf("row = %+v, %v", row, ok)
	}
	var ack Ack
	for range 3 { // repeated rows bring nothing more
		var v Verdict
		if ack, v = us.Apply(t0, row); v != Applied {
			t.Fatalf("Apply = %v", v)
		}
	}
	if us.Share != 800_000 || us.Tokens != 160 {
		t.Fatalf("after receiving us has share %d, %g tokens", us.Share, us.Tokens)
	}
	if v := eu.Acknowledge(t0, ack); v != Applied || eu.Pair("us").Pending() {
		t.Fatalf("Acknowledge = %v, pair %+v", v, eu.Pair("us"))
	}

	if !us.Take(t0, 10) {
		t.Fatal("Take(10) refused with 160 tokens")
	}
	if got := eu.Lend(t0, "us", 25, 0); got != 25 {
		t.Fatalf("Lend = %d, want 25", got)
	}
	if eu.Effective() != 15 {
		t.Fatalf("held loan leaves %g effective, want 15", eu.Effective())
	}
	row, _ = eu.Row("eu", "us")
	ack, _ = us.Apply(t0, row)
	if us.Tokens != 160 || ack.Received.Refused != 15 {
		t.Fatalf("borrower has %g tokens and refused %d", us.Tokens, ack.Received.Refused)
	}
	eu.Acknowledge(t0, ack)
	if eu.Tokens != 30 || eu.Effective() != 40 {
		t.Fatalf("lender has %g tokens of %g", eu.Tokens, eu.Effective())
	}
	if eu.Share+us.Share != limit.Whole {
		t.Fatalf("shares add up to %d", eu.Share+us.Share)
	}
}

// TestGiveKeepsFloor: neither gives nor loans, nor both together, reach into the floor.
func TestGiveKeepsFloor(t *testing.T) {
	t0 := time.UnixMilli(1_760_256_000_000)
	rule := &limit.Rule{Capacity: 100, Refill: 10, PeriodSeconds: 1}
	s := New(bucket.NumbersOf(rule, 500_000), 100_000, 1, t0)
	s.Open(map[string]int64{"us": 1})
	if got := s.Lend(t0, "us", 1000, 0); got != 40 {
		t.Fatalf("Lend = %d, want 40: 50 less the floor's 10", got)
	}
	if got := s.Give(t0, "us", limit.Whole, 0); got != 0 {
		t.Fatalf("Give = %d although loans hold everything above the floor", got)
	}
}
