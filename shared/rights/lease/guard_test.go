package lease

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func three() Votes {
	return Votes{Domain: map[string]string{"eu": "a", "us": "b", Control: "c"}}
}

// clock is a clock that tests set.
type clock struct{ now time.Duration }

func (c *clock) read() time.Duration { return c.now }

// renew sends a renewal and has the voters answer it at once.
func renew(t *testing.T, g *Guard, voters ...string) {
	t.Helper()
	call, ok := g.Call()
	if !ok || call.Lease == 0 {
		t.Fatal("nothing to renew")
	}
	for _, v := range voters {
		g.Hear(Answer{call.Renewal, v}, call.Incarnation)
	}
}

func TestVotesRun(t *testing.T) {
	for name, c := range map[string]struct {
		domains map[string]string
		run     bool
	}{
		"none declared":                {map[string]string{"eu": "", "us": "", "ap": ""}, false},
		"one is missing":               {map[string]string{"eu": "a", "us": "b", "ap": "c", "sa": ""}, false},
		"two domains":                  {map[string]string{"eu": "a", "us": "b", "ap": "b"}, false},
		"two regions and the control":  {map[string]string{"eu": "a", "us": "b", Control: "c"}, true},
		"three regions":                {map[string]string{"eu": "a", "us": "b", "ap": "c"}, true},
		"the control beside a region":  {map[string]string{"eu": "a", "us": "b", Control: "b"}, false},
		"a single region has no peers": {map[string]string{"eu": "a"}, false},
	} {
		if got := (Votes{c.domains}).Run(); got != c.run {
			t.Errorf("%s: run %v", name, got)
		}
	}
}

func TestGuardBeginsFencedWhereLeasesRun(t *testing.T) {
	c := &clock{now: time.Hour}
	g := NewGuard("eu", 1, DefaultTerms(), c.read)
	if !g.Fenced() {
		t.Error("not fenced before the deployment is known")
	}
	g.Deploy(three())
	g.Incarnation(7)
	if !g.Fenced() {
		t.Error("not fenced before anybody answered")
	}
	renew(t, g, "us")
	if g.Fenced() {
		t.Error("two of three domains are a majority")
	}
	c.now += 10*time.Second - 1
	if g.Fenced() {
		t.Error("fenced before the lease was over")
	}
	c.now++ // or a process that was stopped for as long
	if !g.Fenced() {
		t.Error("not fenced when the lease was over")
	}
	renew(t, g, Control)
	if g.Fenced() {
		t.Error("fenced although a majority answers again")
	}
	g.Incarnation(8)
	if !g.Fenced() {
		t.Error("answers to a former incarnation count")
	}
}

func TestOneDomainVotesOnce(t *testing.T) {
	c := &clock{}
	g := NewGuard("eu", 1, DefaultTerms(), c.read)
	g.Deploy(Votes{Domain: map[string]string{"eu": "a", "us": "b", "ap": "b", "sa": "c", "af": "d", Control: "e"}})
	g.Incarnation(1)
	renew(t, g, "us", "ap")
	if !g.Fenced() {
		t.Error("two of five domains are no majority, however many voters sit in them")
	}
	renew(t, g, "sa")
	if g.Fenced() {
		t.Error("three of five are")
	}
}

func TestLeasesBeginAndEndWhileRunning(t *testing.T) {
	c := &clock{now: time.Minute}
	g := NewGuard("eu", 1, DefaultTerms(), c.read)
	g.Incarnation(1)
	two := Votes{Domain: map[string]string{"eu": "a", "us": "b"}}
	g.Deploy(two)
	if call, ok := g.Call(); !ok || call.Lease != 0 || call.Fences || g.Fenced() {
		t.Error("without leases nothing is renewed and nobody fenced, and it says so")
	}
	g.Deploy(three())
	if call, _ := g.Call(); call.Lease == 0 || call.Fences || g.Fenced() {
		t.Error("it must renew, and not fence before anybody could answer")
	}
	c.now += 10 * time.Second
	g.Deploy(three())
	if call, _ := g.Call(); !call.Fences || !g.Fenced() {
		t.Error("nobody answered for a whole lease: it must fence, and say that it does")
	}
	renew(t, g, "us")
	g.Deploy(two)
	if call, _ := g.Call(); call.Lease == 0 || call.Fences {
		t.Error("it must tell the voters that it will not fence any more")
	}
	c.now += 10 * time.Second
	if !g.Fenced() {
		t.Error("as long as no voter knows, they may take over: it must fence")
	}
	renew(t, g, "us")
	c.now += time.Hour
	if g.Fenced() {
		t.Error("fenced although leases have ended")
	}
}

func TestMoreVotersKeepTheLease(t *testing.T) {
	c := &clock{now: time.Minute}
	g := NewGuard("eu", 1, DefaultTerms(), c.read)
	g.Deploy(three())
	g.Incarnation(1)
	renew(t, g, "us", Control)
	g.Deploy(Votes{Domain: map[string]string{"eu": "a", "us": "b", "ap": "d", Control: "c"}})
	if g.Fenced() {
		t.Error("three of four domains have answered")
	}
}

// TestNobodyTakesOverWhatIsInUse: two instances of eu, three other voters of which each stands for two processes. Renewals and
// answers are lost and late, instances are stopped and go on, leases are switched on and off at different moments here and
// there. Whenever every other voter would agree that eu's share be minted anew, all of eu is fenced.
func TestNobodyTakesOverWhatIsInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := Terms{Lease: 10 * time.Second, Margin: 2 * time.Second, Renew: time.Second}
		leased := Votes{Domain: map[string]string{"eu": "a", "us": "b", "ap": "c", Control: "d"}}
		plain := Votes{Domain: map[string]string{"eu": "a", "us": "a", "ap": "c", Control: "c"}}
		c := &clock{}
		eu := []*Guard{NewGuard("eu", 1, terms, c.read), NewGuard("eu", 2, terms, c.read)}
		ears := map[string][]*Ear{}
		for _, v := range []string{"us", "ap", Control} {
			ears[v] = []*Ear{NewEar(0, terms), NewEar(0, terms)}
		}
		for i, g := range eu {
			g.Incarnation(1)
			g.Deploy([]Votes{leased, plain}[rapid.IntRange(0, 1).Draw(t, "begins")])
			for v := range ears {
				for _, e := range ears[v] {
					call, _ := g.Call()
					e.Hear(0, call, Life{"eu", int64(i)})
				}
			}
		}
		type flight struct {
			at time.Duration
			do func()
		}
		var flights []flight
		later := func(do func()) {
			if rapid.IntRange(0, 3).Draw(t, "lost") > 0 {
				flights = append(flights, flight{c.now + time.Duration(rapid.IntRange(0, 4000).Draw(t, "late"))*time.Millisecond, do})
			}
		}
		cut := time.Duration(rapid.IntRange(0, 60).Draw(t, "cut")) * time.Second
		for ; c.now < 100*time.Second; c.now += 500 * time.Millisecond {
			for i, g := range eu {
				if rapid.IntRange(0, 40).Draw(t, "deploys") == 0 {
					g.Deploy([]Votes{leased, plain}[rapid.IntRange(0, 1).Draw(t, "leases")])
				}
				call, _ := g.Call()
				if c.now%terms.Renew != 0 || c.now > cut && c.now < cut+25*time.Second {
					continue
				}
				for v := range ears {
					answering := rapid.IntRange(0, 1).Draw(t, "who answers")
					for k, e := range ears[v] {
						later(func() {
							e.Hear(c.now, call, Life{"eu", int64(i)})
							if k == answering && call.Lease > 0 {
								later(func() { g.Hear(Answer{call.Renewal, v}, call.Incarnation) })
							}
						})
					}
				}
			}
			kept := flights[:0]
			for _, f := range flights {
				if f.at <= c.now {
					f.do()
				} else {
					kept = append(kept, f)
				}
			}
			flights = kept
			agreed := true
			for v := range ears {
				// Of the processes of a voter the one that has answered last is asked: in production their regional Redis sees to it.
				for _, e := range ears[v] {
					fences, known := e.Fences("eu")
					agreed = agreed && e.Silent(c.now, "eu") && fences && known
				}
			}
			for i, g := range eu {
				if agreed && !g.Fenced() {
					t.Fatalf("at %v everybody agrees and instance %d uses its share", c.now, i)
				}
			}
		}
	})
}
