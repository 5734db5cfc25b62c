package api

import (
	"fmt"
	"math"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/shared/limit"
)

// findings say why requests are refused, and what would admit them.
func findings(k *board.Key, regions []RegionExplanation, now time.Time) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if k.Rule == nil {
		return []string{"nothing limits this key"}
	}
	switch k.Rule.Mode {
	case limit.Block:
		return []string{"the rule's mode is block: every request is refused, whatever the numbers; change the mode to admit any"}
	case limit.Unlimited:
		return []string{"the rule's mode is unlimited: no request is refused"}
	case limit.Shadow:
		say("the rule's mode is shadow: refusals are counted, requests are admitted")
	}
	for _, r := range regions {
		for _, g := range r.Gateways {
			if r.Known && !g.Draining && g.Rules != (limit.Revision{}) && k.RuleRevision.Newer(g.Rules) {
				say("gateway %s of %s still serves by revision %s, the rule is of %s", g.Instance, r.Region, g.Rules, k.RuleRevision)
			}
			if g.Degraded {
				say("gateway %s of %s decides without its Redis, within its part of the slice", g.Instance, r.Region)
			}
			if g.Stale {
				say("gateway %s of %s serves by rules that it saved earlier: it cannot read the ledger", g.Instance, r.Region)
			}
		}
	}
	for _, r := range regions {
		if r.Refusal != nil {
			out = append(out, refusal(k, &r, now))
		}
	}
	rule := k.Rule.Limit(k.RuleRevision)
	rate := rule.SliceOf(limit.Whole).Rate
	idle := 0.0
	for _, r := range regions {
		idle += math.Max(0, r.Rate-(r.Offered-r.Refused))
	}
	for _, r := range regions {
		switch {
		case !r.Known:
			say("%s is silent: what it offers is unknown and its share stays where it is", r.Region)
		case r.Refused > 0 && k.Offered > rate:
			say("%s refuses %.3g of %.3g tokens/s: the key asks for %.3g/s worldwide, its limit is %.3g/s; a higher limit would admit more", r.Region, r.Refused, r.Offered, k.Offered, rate)
		case r.Refused > 0:
			say("%s refuses %.3g of %.3g tokens/s with %.1f %% of the limit while other regions leave %.3g/s unused; the next cycle moves share there", r.Region, r.Refused, r.Offered, r.Share.Percent(), idle)
		}
	}
	for _, s := range k.Regions {
		if s.Pin != nil {
			end := "until unpinned"
			if !s.PinEnds.IsZero() {
				end = "until " + s.PinEnds.UTC().Format(time.RFC3339)
			}
			say("%s is pinned at %.1f %% %s", s.Region, s.Pin.Percent(), end)
		}
	}
	if len(out) == 0 {
		say("nothing is refused")
	}
	return out
}

// refusal says why the last request was refused and what would have admitted it.
func refusal(k *board.Key, r *RegionExplanation, now time.Time) string {
	last := r.Refusal
	request := "a request"
	if last.Cost != 1 {
		request = fmt.Sprintf("a request of cost %d", last.Cost)
	}
	s := fmt.Sprintf("last refusal in %s, %s ago: %s at gateway %s, decided by %s: ", r.Region,
		max(now.Sub(last.At), 0).Round(time.Second), request, last.Gateway, last.Source)
	capacity := k.Rule.Capacity
	switch {
	case last.Limit != "" && last.Limit != k.Route:
		return s + fmt.Sprintf("not this limit but that of %s/%s had no room: see partidorctl explain %s %s", k.Tenant, last.Limit, k.Tenant, last.Limit)
	case last.Outcome == limit.TooLarge.String() && last.Cost > capacity:
		return s + fmt.Sprintf("it costs more than the whole capacity of %d, no waiting helps; a capacity of at least %d would admit it", capacity, last.Cost)
	case last.Outcome == limit.TooLarge.String() && k.Rule.MaxCost > 0 && last.Cost > k.Rule.MaxCost:
		return s + fmt.Sprintf("the rule declares that no request costs more than %d (max_cost)", k.Rule.MaxCost)
	case last.Outcome == limit.TooLarge.String():
		return s + fmt.Sprintf("it costs more than this region's slice of %s tokens; a larger share, or max_cost %d in the rule, would admit it", number(r.Capacity), last.Cost)
	case last.Outcome == limit.Blocked.String():
		return s + "the rule in force there blocks every request"
	case last.Outcome == limit.Unable.String() && k.Rule.OnError == limit.OnErrorDeny:
		return s + "no decision could be made in time and the rule denies then; a Redis that answers, or on_error local, would admit it"
	case last.Outcome == limit.Unable.String():
		return s + "its Redis does not answer, and the gateway has used up its own part of the slice; a Redis that answers would admit it"
	}
	why := fmt.Sprintf("the bucket held %s of the %d tokens it takes", number(last.Tokens), last.Cost)
	if last.RetryAfter > 0 {
		return s + why + fmt.Sprintf("; waiting %s s would have admitted it", number(last.RetryAfter))
	}
	return s + why
}

// number as people read it.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
}
