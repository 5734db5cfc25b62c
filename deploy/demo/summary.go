package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// tolerance is what the checker's own arithmetic may be off by, in tokens.
const tolerance = 1e-6

// summary is the end of a demo, and the output of -json.
type summary struct {
	Seconds float64         `json:"seconds"`
	Tenants []tenantSummary `json:"tenants"`
	// Exceeded tells that some limit was exceeded, worldwide, in some interval.
	Exceeded bool `json:"exceeded"`
	// Faults and Samples of a soak.
	Faults  []soakFault  `json:"faults,omitempty"`
	Samples []soakSample `json:"samples,omitempty"`
}

type tenantSummary struct {
	Tenant          string `json:"tenant"`
	Route           string `json:"route"`
	Capacity        int64  `json:"capacity"`
	RefillPerSecond int64  `json:"refill_per_second"`
	Offered         int64  `json:"offered"`
	Admitted        int64  `json:"admitted"`
	Refused         int64  `json:"refused"`
	// Failed requests were neither admitted nor refused.
	Failed     int64  `json:"failed"`
	FirstError string `json:"first_error,omitempty"`
	// RefusedWithRoom were refused in seconds in which one ideal bucket for the whole world would have refused nobody.
	RefusedWithRoom int64 `json:"refused_with_room"`
	// DeepestDraw is the most tokens that any interval took beyond its refill: at most the capacity.
	DeepestDraw float64 `json:"deepest_draw"`
	// Excess is the tokens taken beyond the limit, 0 if it was kept.
	Excess float64 `json:"excess"`
	// Shares at the end, in parts per million, by region.
	Shares limit.Split `json:"shares"`
}

func (t *traffic) summary(w *world) *summary {
	s := &summary{Seconds: time.Since(t.start).Seconds()}
	for _, a := range t.accounts {
		offered, admitted, refused, failed := a.whole()
		excess := a.checker.Excess()
		if excess <= tolerance {
			excess = 0
		}
		s.Exceeded = s.Exceeded || excess > 0
		s.Tenants = append(s.Tenants, tenantSummary{
			Tenant: a.tenant.name, Route: route, Capacity: a.tenant.capacity, RefillPerSecond: a.tenant.refill,
			Offered: offered, Admitted: admitted, Refused: refused, Failed: failed, FirstError: a.firstError,
			RefusedWithRoom: a.ideal.Needless(), DeepestDraw: math.Round(a.checker.Deepest()*1000) / 1000, Excess: excess,
			Shares: a.shares(w, time.Now()),
		})
	}
	return s
}

func (s *summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	fmt.Fprintf(out, "\nafter %.0f s:\n", s.Seconds)
	for _, t := range s.Tenants {
		verdict := "kept"
		if t.Excess > 0 {
			verdict = fmt.Sprintf("EXCEEDED by %.3f tokens", t.Excess)
		}
		fmt.Fprintf(out, "  %-9s limit %s: deepest draw %.1f of %d tokens; %d of %d admitted, %d refused, %d of them while the world had room\n",
			t.Tenant, verdict, t.DeepestDraw, t.Capacity, t.Admitted, t.Offered, t.Refused, t.RefusedWithRoom)
		if t.Failed > 0 {
			fmt.Fprintf(out, "            %d failed: %s\n", t.Failed, t.FirstError)
		}
	}
	return nil
}
