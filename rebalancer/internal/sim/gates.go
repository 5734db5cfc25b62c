package sim

import (
	"errors"
	"fmt"
)

// Gates are the numbers a scenario must reach with strategy partidor.
type Gates struct {
	// Efficiency is the least, RefusedWithRoom the most allowed; both are parts of 1. A zero RefusedWithRoom is not checked.
	Efficiency      float64
	RefusedWithRoom float64
	// OverAdmission is the most allowed, in tokens.
	OverAdmission float64
	// Messages is the most allowed per minute and key; 0 is not checked.
	Messages float64
}

// belowStatic is how far under the static split the efficiency may ever fall.
const belowStatic = 0.001

// Check names every gate that an outcome misses. static is the outcome of the static split on the same arrivals, if it
// was run.
func (g *Gates) Check(o Outcome, static *Outcome) error {
	var errs []error
	miss := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if e := o.Efficiency(); e < g.Efficiency {
		miss("efficiency %.3f %%, must be at least %.3f %%", 100*e, 100*g.Efficiency)
	}
	if r := o.RefusedWithRoom(); g.RefusedWithRoom > 0 && r > g.RefusedWithRoom {
		miss("refused while there was room %.4f %%, must be at most %.4f %%", 100*r, 100*g.RefusedWithRoom)
	}
	if o.Depth >= g.OverAdmission {
		miss("over-admission %.3f tokens, must be below %.3f", o.Depth, g.OverAdmission)
	}
	if m := o.MessagesPerMinute(); g.Messages > 0 && m > g.Messages {
		miss("%.0f messages a minute, must be at most %.0f", m, g.Messages)
	}
	if static != nil && o.Efficiency() < static.Efficiency()-belowStatic {
		miss("efficiency %.3f %%, static split %.3f %%", 100*o.Efficiency(), 100*static.Efficiency())
	}
	return errors.Join(errs...)
}
