package plan

import (
	"fmt"
	"math"

	"partidor.dev/partidor/shared/limit"
)

// Kind is why a key's target is what it is.
type Kind uint8

// The kinds of reasons.
const (
	// Steady: every region is within the deadband of its target, or the limit is one whose shares stay (limit.Rule.Still).
	Steady Kind = iota
	// Follow: the claims fit the limit; shares follow the demand.
	Follow
	// Contended: the claims exceed the limit; it is shared max-min fairly.
	Contended
	// Forced: a floor, a pin or a drain had to be met.
	Forced
	// Pinned: operators fixed every region that can be planned.
	Pinned
	// Home: the limit is too small to divide; its rights gather in one region.
	Home
	// Silent: no region that could take part has reported.
	Silent
)

var kinds = [...]string{"steady", "follow", "contended", "forced", "pinned", "home", "silent"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return "unknown"
}

// Reason says why, in numbers; String says it in words.
type Reason struct {
	Kind Kind
	// Stepped: the step limit shortened the change.
	Stepped bool
	// Gainer and Loser are the regions whose share changes most; demands are in tokens per second.
	Gainer, Loser             string
	GainerDemand, LoserDemand float32
	GainerFrom, GainerTo      limit.Share
	LoserFrom, LoserTo        limit.Share
	// Rate of the limit worldwide, tokens per second.
	Rate float32
}

func (r *Reason) describe(d *Demand, s *scratch, gain, lose int) {
	r.Gainer, r.Loser = s.regions[gain].Name, s.regions[lose].Name
	r.GainerDemand = float32(d.Loads[gain].demand(s.p))
	r.LoserDemand = float32(d.Loads[lose].demand(s.p))
	r.GainerFrom, r.GainerTo = s.current[gain], s.target[gain]
	r.LoserFrom, r.LoserTo = s.current[lose], s.target[lose]
	r.Rate = float32(rateOf(d.Rule))
}

// String is a sentence for the ledger, the console and partidorctl.
func (r Reason) String() string {
	change := fmt.Sprintf("%s %.1f %% -> %.1f %%, %s %.1f %% -> %.1f %%",
		r.Gainer, r.GainerFrom.Percent(), r.GainerTo.Percent(), r.Loser, r.LoserFrom.Percent(), r.LoserTo.Percent())
	offered := fmt.Sprintf("%s offers %s/s, %s %s/s of %s/s",
		r.Gainer, number(r.GainerDemand), r.Loser, number(r.LoserDemand), number(r.Rate))
	if r.Stepped {
		change += " (one step)"
	}
	switch r.Kind {
	case Steady:
		return "steady: within the deadband"
	case Silent:
		return "silent: no report to plan by"
	case Follow:
		return "follow: " + offered + "; " + change
	case Contended:
		return "contended: more is asked than the limit gives; " + offered + "; " + change
	case Forced:
		return "forced: a floor, pin or drain must be met; " + change
	case Pinned:
		return "pinned: " + change
	case Home:
		return "home: too small to divide, all rights go to " + r.Gainer
	}
	return r.Kind.String()
}

func number(v float32) string {
	if math.Abs(float64(v)) >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
