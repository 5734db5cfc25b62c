package home

import (
	"strconv"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

func TestBookIsBoundedAndLearns(t *testing.T) {
	b := NewBook(3)
	key := func(i int) limit.Key { return limit.Key{Tenant: "t" + strconv.Itoa(i), Route: "r"} }
	if got := b.Home(key(0), "eu"); got != "eu" {
		t.Errorf("an unknown key is at home in %s", got)
	}
	for i := range 10 {
		b.Learn(key(i), "us")
	}
	b.Learn(key(9), "ap")
	if got := b.Home(key(9), "eu"); got != "ap" {
		t.Errorf("home is %s, want the last one told", got)
	}
	if len(b.homes) > 3 {
		t.Errorf("%d homes remembered, at most 3", len(b.homes))
	}
}

func TestHoldOnlyWhatStillArrivesInTime(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		next, left, trip time.Duration
		ok               bool
	}{
		{30 * ms, 110 * ms, 40 * ms, true},
		{70 * ms, 110 * ms, 40 * ms, true},
		{71 * ms, 110 * ms, 40 * ms, false},
		{0, 110 * ms, 40 * ms, false},
		{time.Hour, 110 * ms, 40 * ms, false},
	} {
		if wait, ok := Hold(c.next, c.left, c.trip); ok != c.ok || ok && wait != c.next {
			t.Errorf("Hold(%v, %v, %v) = %v, %v", c.next, c.left, c.trip, wait, ok)
		}
	}
	// A request sent right after the silence reaches the home early enough to be held until the token comes.
	next, trip := 900*ms, 40*ms
	arrives := Silence(next, trip, Budget) + trip
	if _, ok := Hold(next-arrives, Budget-trip, trip); !ok {
		t.Errorf("arriving %v before the token is not held", next-arrives)
	}
}
