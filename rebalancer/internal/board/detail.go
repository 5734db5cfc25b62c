package board

import (
	"time"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/shared/limit"
)

// Refusal is one request that was not admitted.
type Refusal struct {
	At      time.Time `json:"at"`
	Gateway string    `json:"gateway"`
	// Outcome is refused, too_large, blocked or unable; Source is who decided: redis, prefetch, fallback and so on.
	Outcome string `json:"outcome"`
	Source  string `json:"source"`
	// Cost of the request, and Tokens that the bucket held then.
	Cost   int64   `json:"cost"`
	Tokens float64 `json:"tokens"`
	// RetryAfter is the seconds until the same request would have been admitted if nobody else came.
	RetryAfter float64 `json:"retry_after"`
	// Limit is the route of the limit that had no room, where it is another one of the same request.
	Limit string `json:"limit,omitempty"`
}

// detail adds what is known of one key in one region.
func (s *Share) detail(d *collect.Detail) {
	if d.Told {
		s.Tokens = &d.Tokens
	}
	for i, n := range d.Sources {
		if n == 0 {
			continue
		}
		if s.Sources == nil {
			s.Sources = map[string]uint64{}
		}
		s.Sources[limit.Source(i).String()] += n
	}
	s.Moves, s.Loans = d.Moves, d.Loans
	if r := d.Refusal; r != nil {
		s.Refusal = &Refusal{At: d.RefusedAt, Gateway: d.RefusedBy, Outcome: r.Outcome, Source: r.Source, Cost: r.Cost, Tokens: r.Tokens,
			RetryAfter: float64(r.WaitMillis) / 1000, Limit: r.Limit}
	}
}
