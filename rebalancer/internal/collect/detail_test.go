package collect

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// say sends a report about one key as it is.
func (g *gateway) say(t *Table, now time.Duration, u wire.KeyUsage) {
	g.sequence++
	t.Usage(now, &wire.Usage{ElapsedMillis: int64((now - g.born) / time.Millisecond), Keys: []wire.KeyUsage{u},
		Header: wire.Header{Version: wire.Version, Region: g.region, Instance: g.name, Started: g.started, Sequence: g.sequence}})
}

func TestDetailsOfAKey(t *testing.T) {
	table, _ := testTable(Options{})
	g := newGateway("eu", "eu-1", 0)
	key := limit.Key{Tenant: "a", Route: "r"}
	clock := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	usage := func(admitted uint64, share limit.Share) wire.KeyUsage {
		return wire.KeyUsage{Tenant: "a", Route: "r", Admitted: admitted, Share: share, Tokens: 12.5}
	}
	look := func(now time.Duration) Detail {
		return table.Details(now, clock.Add(now), key, []string{"mars", "eu"})[1]
	}
	second := time.Second
	g.say(table, second, usage(1, 700_000))
	if d := look(second); !d.Told || d.Tokens != 12.5 || d.Sources != nil || d.Refusal != nil || d.Moves != nil || len(table.details) != 0 {
		t.Errorf("an ordinary key: %+v, %d details", d, len(table.details))
	}
	u := usage(5, 700_000)
	u.Sources, u.Refusal = []uint32{1, 3}, &wire.Refusal{Outcome: "refused", Source: "redis", Cost: 2, WaitMillis: 20}
	g.say(table, 2*second, u)
	g.say(table, 3*second, usage(6, 650_000))
	u = usage(7, 650_000)
	u.Sources = []uint32{1, 0, 0, 2}
	g.say(table, 70*second, u)
	d := look(71 * second)
	if !slices.Equal(d.Sources, []uint64{2, 3, 0, 2}) {
		t.Errorf("sources of two minutes: %v", d.Sources)
	}
	if d.Refusal == nil || d.Refusal.Cost != 2 || d.RefusedBy != "eu-1" || !d.RefusedAt.Equal(clock.Add(2*second)) {
		t.Errorf("refusal %+v at %s by %s", d.Refusal, d.RefusedAt, d.RefusedBy)
	}
	if len(d.Moves) != 1 || d.Moves[0] != (ShareMove{clock.Add(3 * second), 700_000, 650_000}) {
		t.Errorf("moves %+v", d.Moves)
	}
	if d := look(200 * second); len(d.Sources) != 0 || d.Refusal == nil {
		t.Errorf("after three minutes: %+v", d)
	}
	table.Sweep(2000 * second)
	if len(table.details) != 0 {
		t.Error("details are kept for ever")
	}
}

// Two gateways of a region, one of which goes on saying the share of before: one move.
func TestAnOldWordIsNoMove(t *testing.T) {
	table, _ := testTable(Options{})
	old, young := newGateway("eu", "eu-1", 0), newGateway("eu", "eu-2", 0)
	for i := range 20 {
		now := time.Duration(i+1) * time.Second
		old.say(table, now, wire.KeyUsage{Tenant: "a", Route: "r", Admitted: uint64(i + 1), Share: 700_000})
		share := limit.Share(700_000)
		if i >= 5 {
			share = 650_000
		}
		young.say(table, now, wire.KeyUsage{Tenant: "a", Route: "r", Admitted: uint64(i + 1), Share: share})
	}
	d := table.Details(time.Minute, time.Now(), limit.Key{Tenant: "a", Route: "r"}, []string{"eu"})[0]
	if len(d.Moves) != 1 || d.Moves[0].From != 700_000 || d.Moves[0].To != 650_000 {
		t.Errorf("moves %+v", d.Moves)
	}
}

// Whatever is reported, no more than a fixed number of details and moves is kept.
func TestDetailsAreBounded(t *testing.T) {
	table, _ := testTable(Options{MaxKeys: 2 * maxDetails})
	g := newGateway("eu", "eu-1", 0)
	for i := range maxDetails + 100 {
		u := wire.KeyUsage{Tenant: fmt.Sprint(i), Route: "r", Admitted: 1, Sources: []uint32{0, 1}}
		g.say(table, time.Duration(i+1)*time.Millisecond, u)
	}
	if len(table.details) != maxDetails {
		t.Errorf("%d details, want %d", len(table.details), maxDetails)
	}
	for i := range 100 {
		g.say(table, time.Minute+time.Duration(i)*time.Second, wire.KeyUsage{Tenant: "0", Route: "r", Admitted: uint64(i + 2), Share: limit.Share(100_000 + i)})
	}
	if d := table.Details(3*time.Minute, time.Now(), limit.Key{Tenant: "0", Route: "r"}, []string{"eu"})[0]; len(d.Moves) != maxMoves || d.Moves[maxMoves-1].To != 100_099 {
		t.Errorf("moves %+v", d.Moves)
	}
}

func TestGatewaysOfARegion(t *testing.T) {
	table, _ := testTable(Options{})
	for i, h := range []wire.Heartbeat{{Rules: limit.Revision{Epoch: 1, Number: 7}}, {Rules: limit.Revision{Epoch: 1, Number: 5}, Stale: true, Degraded: true}} {
		h.Header = wire.Header{Version: wire.Version, Region: "eu", Instance: fmt.Sprintf("eu-%d", i), Started: 1, Sequence: 1}
		table.Heartbeat(time.Second, &h)
	}
	got := table.status(3 * time.Second)[0].Gateways
	want := []Gateway{{Instance: "eu-0", Rules: limit.Revision{Epoch: 1, Number: 7}, Silence: 2}, {Instance: "eu-1", Rules: limit.Revision{Epoch: 1, Number: 5}, Stale: true, Degraded: true, Silence: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("gateways %+v, want %+v", got, want)
	}
}
