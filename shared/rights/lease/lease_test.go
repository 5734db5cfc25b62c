package lease

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMajorityHolds(t *testing.T) {
	terms := DefaultTerms()
	h := NewHolder("eu", 7, []string{"us", "ap", "control"}, terms)
	answer := func(voter string, stamp time.Duration) {
		h.Hear(stamp+time.Second, Answer{Renewal{"eu", 7, stamp}, voter})
	}
	if h.Live(0) {
		t.Error("live before anybody answered")
	}
	answer("us", 0)
	if h.Live(time.Second) {
		t.Error("two of four votes are no majority")
	}
	answer("control", 3*time.Second)
	if !h.Live(9*time.Second) || h.Live(10*time.Second) {
		t.Error("the lease must end ten seconds after the older of the two answers was asked for")
	}
	answer("us", 5*time.Second)
	answer("us", 1*time.Second) // overtaken
	if end, _ := h.Until(); end != 13*time.Second {
		t.Errorf("ends at %v, want 13s", end)
	}
	for _, a := range []Answer{
		{Renewal{"eu", 6, 9 * time.Second}, "ap"},
		{Renewal{"us", 7, 9 * time.Second}, "ap"},
		{Renewal{"eu", 7, 9 * time.Second}, "mars"},
		{Renewal{"eu", 7, 99 * time.Second}, "ap"},
	} {
		h.Hear(9*time.Second, a)
	}
	if end, _ := h.Until(); end != 13*time.Second {
		t.Errorf("answers that count for nothing moved the end to %v", end)
	}
}

func TestVoterWithoutMemoryWaits(t *testing.T) {
	v := NewVoter("us", time.Hour, DefaultTerms())
	if v.Agrees(time.Hour+12*time.Second, "eu") || !v.Agrees(time.Hour+12*time.Second+1, "eu") {
		t.Error("a voter must wait lease + margin after its own start")
	}
}

// Whatever the network does, and with every clock running up to 5 % fast or slow from any start: once enough voters agree
// that a region is gone, that region's lease is over.
func TestTheFencePrecedesTheAgreement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := DefaultTerms()
		n := rapid.IntRange(2, 5).Draw(t, "regions")
		type clock struct {
			start time.Duration
			speed float64
		}
		clocks := make([]clock, n+1)
		for i := range clocks {
			clocks[i] = clock{time.Duration(rapid.IntRange(0, 1e6).Draw(t, "start")) * time.Millisecond, rapid.Float64Range(0.95, 1.05).Draw(t, "speed")}
		}
		read := func(i int, at time.Duration) time.Duration {
			return clocks[i].start + time.Duration(float64(at)*clocks[i].speed)
		}
		names := []string{"r0", "r1", "r2", "r3", "r4", "control"}
		voters := []string{"control"}
		for i := 1; i < n; i++ {
			voters = append(voters, names[i])
		}
		h := NewHolder("r0", 1, voters, terms)
		all := map[string]*Voter{"control": NewVoter("control", read(n, 0), terms)}
		index := map[string]int{"control": n}
		for i := 1; i < n; i++ {
			all[names[i]], index[names[i]] = NewVoter(names[i], read(i, 0), terms), i
		}
		type flight struct {
			at time.Duration
			a  Answer
		}
		var flights []flight
		cut := time.Duration(rapid.IntRange(0, 60_000).Draw(t, "cut")) * time.Millisecond
		for at := time.Duration(0); at < 100*time.Second; at += 250 * time.Millisecond {
			if at%time.Second == 0 {
				r := h.Renewal(read(0, at))
				for _, v := range voters {
					if at > cut && rapid.Bool().Draw(t, "lost") || at > cut+20*time.Second {
						continue
					}
					late := time.Duration(rapid.IntRange(0, 5_000).Draw(t, "late")) * time.Millisecond
					arrives := at + late/2
					flights = append(flights, flight{at + late, all[v].Answer(read(index[v], arrives), r)})
				}
			}
			for _, f := range flights {
				if f.at <= at {
					h.Hear(read(0, at), f.a)
				}
			}
			agreed := 0
			for name, v := range all {
				if v.Agrees(read(index[name], at), "r0") {
					agreed++
				}
			}
			if Enough(n+1, agreed) && h.Live(read(0, at)) {
				t.Fatalf("at %v %d voters agree to minting while the lease lives", at, agreed)
			}
		}
	})
}
