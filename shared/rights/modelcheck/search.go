package modelcheck

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// Result is what a search found.
type Result struct {
	States, Depth int
	// Lowest level the virtual bucket of the whole limit ever had.
	Lowest int
	// Exhaustive: every reachable state was visited.
	Exhaustive bool
	// Violation says what broke, empty if nothing did, and Steps is a shortest way there.
	Violation string
	Steps     []string
}

func (r Result) String() string {
	s := fmt.Sprintf("%d states, depth %d, lowest level %d", r.States, r.Depth, r.Lowest)
	switch {
	case r.Violation != "":
		return s + ": VIOLATED: " + r.Violation + "\n\t" + strings.Join(r.Steps, ", ")
	case r.Exhaustive:
		return s + ": holds, exhaustive"
	}
	return s + ": holds, bounded"
}

type node struct {
	w      *world
	parent int32
	step   string
}

// Search visits the worlds of a scope breadth first until one is wrong or none is left. Worlds are told apart by a 64-bit
// hash.
func Search(c Scope) (res Result, err error) {
	if err := c.validate(); err != nil {
		return Result{}, err
	}
	seed := maphash.MakeSeed()
	var buf []byte
	seen := map[uint64]struct{}{}
	var history []node
	add := func(w *world, parent int32, step string) bool {
		if c.Prune {
			c.prune(w)
		}
		buf = c.encode(w, buf[:0])
		h := maphash.Bytes(seed, buf)
		if _, ok := seen[h]; ok {
			return false
		}
		seen[h] = struct{}{}
		history = append(history, node{w, parent, step})
		return true
	}
	path := func(i int32) (steps []string) {
		for ; i > 0; i = history[i].parent {
			steps = append(steps, history[i].step)
		}
		slices.Reverse(steps)
		return steps
	}
	first := c.initial()
	res.Lowest = int(first.level)
	add(first, -1, "")
	for begin, end := 0, 1; begin < end; begin, end = end, len(history) {
		for i := begin; i < end; i++ {
			w := history[i].w
			goOn := c.successors(w, func(n *world, step string) bool {
				if !add(n, int32(i), step) {
					return true
				}
				res.Lowest = min(res.Lowest, int(n.level))
				if res.Violation = c.wrong(n); res.Violation != "" {
					res.Steps = path(int32(len(history) - 1))
					return false
				}
				return c.MaxStates == 0 || len(history) < c.MaxStates
			})
			history[i].w = nil
			if !goOn {
				res.States, res.Depth = len(history), res.Depth+1
				return res, nil
			}
		}
		res.Depth++
	}
	res.States, res.Exhaustive = len(history), true
	return res, nil
}

// wrong says what is wrong with a world, or nothing.
func (c *Scope) wrong(w *world) string {
	if w.level < 0 {
		return fmt.Sprintf("admitted %d more than the limit", -w.level)
	}
	if c.Broken != Sound {
		return ""
	}
	return c.conserved(w.clone())
}

// conserved lets everything that is pending arrive and every region come back, and looks at what the shares add up to.
func (c *Scope) conserved(w *world) string {
	if wrong := c.recover(w); wrong != "" {
		return wrong
	}
	for range 2 {
		for i := range w.regions {
			for j := range w.regions {
				if r, ok := w.regions[i].Row(names[i], names[j]); ok {
					if a, v := w.regions[j].Apply(epoch, r); v == rights.Applied {
						w.regions[i].Acknowledge(epoch, a)
					}
				}
			}
		}
	}
	var sum limit.Share
	for i := range w.regions {
		s := &w.regions[i]
		sum += s.Share
		if s.Share < s.Floor {
			return fmt.Sprintf("%s is left with %d, below its floor", names[i], s.Share)
		}
		if s.Held() != 0 {
			return fmt.Sprintf("%s holds %d for ever", names[i], s.Held())
		}
	}
	if sum != limit.Whole {
		return fmt.Sprintf("shares add up to %d", sum)
	}
	return ""
}
