package admit

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// shadowPrefix before a route's name makes the bucket of a rule in shadow mode: it never touches the enforced one.
const shadowPrefix = "@shadow:"

// shadow asks what the rules in shadow mode would have said, for the metrics only. They are asked on their own, and not
// at all while Redis is away.
func (a *Admitter) shadow(ctx context.Context, now time.Time, c *call) {
	for i := range c.shadows {
		n := a.nodes.of(&c.shadows[i])
		permit, ok := n.Acquire(now)
		if !ok {
			return
		}
		d, took, err := a.take(ctx, c, c.shadows[i:i+1])
		n.Done(now.Add(took), permit, took, err)
		if err != nil {
			return
		}
		if d.Outcome != limit.Allowed {
			a.metrics.shadowed(d.Outcome)
		}
	}
}
