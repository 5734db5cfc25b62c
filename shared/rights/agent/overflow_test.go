package agent

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// donor is an agent of a region that holds half of 1000/s, is offered nothing, and was just seen full.
func donor(t *testing.T, now time.Time) (*Agent, *key) {
	t.Helper()
	rule := &limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1}
	a := New(Options{Region: "a", Peers: []string{"b", "c"}, Policy: DefaultPolicy(), RoundTrip: 80 * time.Millisecond,
		Rule: func(limit.Key) *limit.Rule { return rule }})
	a.Observe(now, testKey, 0, 0)
	k := a.keys[testKey]
	k.learn(now, &rights.Report{Share: limit.Whole / 2, Floor: limit.Whole / 40, Level: bucket.Level{Tokens: 500}, Effective: 500, Phase: rights.Active})
	return a, k
}

// lent is what the agent wants to lend now.
func lent(a *Agent, k *key, now time.Time) (tokens int64, gives int) {
	a.Drain()
	a.donate(now, k)
	for _, s := range a.Drain().Steps {
		switch s.Op {
		case rights.OpLend:
			tokens += s.Amount
		case rights.OpGive:
			gives++
		}
	}
	return tokens, gives
}

// What a full region would lose goes to who has asked for it, also once that one has asked for more; without an ask nothing.
func TestOverflowGoesToWhoAskedForIt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		name string
		asks []Ask
		want int64
	}{
		{"nobody asks", nil, 0},
		{"one asks for overflow", []Ask{{Fill: 400, Life: time.Second}}, 140},                                          // 500 + 500/s · 250 ms − 97 % of 500
		{"and then for what it needs", []Ask{{Fill: 400, Life: time.Second}, {Need: 30, Life: time.Second}}, 30 + 139}, // from 470, whose loan has made no room yet,
		{"the ask for overflow is over", []Ask{{Fill: 400, Life: -time.Second}, {Need: 30, Life: time.Second}}, 30},
		{"little is asked for", []Ask{{Fill: 50, Life: time.Second}}, 50},
	} {
		a, k := donor(t, now)
		for _, ask := range c.asks {
			ask.Key, ask.From, ask.To = testKey, "b", "a"
			a.HearAsk(now, ask)
		}
		if got, _ := lent(a, k, now); got != c.want {
			t.Errorf("%s: lent %d, want %d", c.name, got, c.want)
		}
	}
}

// Share and tokens leave together: a region that has given share is full at once and would lose what comes in.
func TestShareAndTokensLeaveTogether(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	a, k := donor(t, now)
	a.HearAsk(now, Ask{Key: testKey, From: "b", To: "a", Need: 100, Rate: 200, Life: time.Second})
	if tokens, gives := lent(a, k, now); gives != 1 || tokens != 100 {
		t.Errorf("gave share %d times and lent %d tokens, want once and 100", gives, tokens)
	}
	if k.level.share != limit.Whole*3/10 || k.level.effective != 200 || k.level.tokens != 200 {
		t.Errorf("believes to be left with %d ppm and %v of %v tokens", k.level.share, k.level.tokens, k.level.effective)
	}
}

// The fewer messages are left, the more a loan has to be worth; the last of them are for share.
func TestScarceMessagesCarryMore(t *testing.T) {
	for _, c := range []struct{ left, want float64 }{{6, 1}, {3.1, 1}, {3, 1}, {1.5, 5.5}, {0, 10}, {-6, 10}} {
		if got := (&budget{left: c.left, burst: 6}).scarcity(); got != c.want {
			t.Errorf("with %v of 6 left: %v times, want %v", c.left, got, c.want)
		}
	}
	now := time.Unix(1_800_000_000, 0)
	a, k := donor(t, now)
	a.budget(now, k).left = 2*transferMessages - 1
	a.HearAsk(now, Ask{Key: testKey, From: "b", To: "a", Need: 100, Life: time.Second})
	if tokens, _ := lent(a, k, now); tokens != 0 {
		t.Errorf("lent %d tokens by the last messages", tokens)
	}
	a.HearAsk(now, Ask{Key: testKey, From: "b", To: "a", Rate: 200, Life: time.Second})
	if _, gives := lent(a, k, now); gives != 1 {
		t.Errorf("gave share %d times by the last messages, want once", gives)
	}
}

// Where messages run low a demand that has halved within a second is gone, however high it was; else it may come back.
func TestNeedOfADemandThatIsGone(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		left              float64
		fast, slow, usual float64
		want              limit.Share
	}{
		{0, 100, 100, 100, 110_000},
		{0, 95, 100, 100, 110_000},
		{0, 100, 300, 300, 110_000},
		{30, 100, 300, 300, 317_321},
		{0, 160, 300, 300, 317_321},
	} {
		a, k := donor(t, now)
		a.budget(now, k).left = c.left
		k.demand = demand{fast: c.fast, slow: c.slow, usual: c.usual}
		if got := a.needed(now, k); got != c.want {
			t.Errorf("%+v needs %d", c, got)
		}
	}
}

// Whoever gives share keeps enough for the dearest request.
func TestDonorsKeepRoomForTheDearestRequest(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	a, k := donor(t, now)
	a.rule = func(limit.Key) *limit.Rule {
		return &limit.Rule{Capacity: 1000, Refill: 1000, PeriodSeconds: 1, MaxCost: 150}
	}
	a.HearAsk(now, Ask{Key: testKey, From: "b", To: "a", Rate: 1000, Life: time.Second})
	a.Drain()
	a.donate(now, k)
	steps := a.Drain().Steps
	if len(steps) != 1 || steps[0].Op != rights.OpGive || steps[0].Amount != 350_000 || steps[0].Keep != 150_000 {
		t.Errorf("steps %+v, want 35 %% given and 15 %% kept", steps)
	}
}
