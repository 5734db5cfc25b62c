package admission

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

// Decision is one line of a gateway's decision log (decision.log.file).
type Decision struct {
	// Time is when the answer was known, TookMicros how long that took.
	Time             time.Time
	TookMicros       int64 `json:"took_us"`
	Region, Instance string
	Tenant, Route    string
	Cost             int64
	Outcome, Source  string
	// Share in force, in parts per million, of the limit of the route Limit: the own one, or @tenant.
	Share int64
	Limit string
	// Log is which of the files it stood in: a process each.
	Log int `json:"-"`
}

// ReadLogs merges decision logs, in the order of time. The last line of a process that was killed may be torn.
func ReadLogs(paths ...string) ([]Decision, error) {
	var all []Decision
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		torn := error(nil)
		n := 0
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if n++; torn != nil {
				f.Close()
				return nil, torn
			}
			d := Decision{Log: i}
			if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
				torn = fmt.Errorf("%s:%d: %w", path, n, err)
				continue
			}
			all = append(all, d)
		}
		f.Close()
	}
	slices.SortStableFunc(all, func(a, b Decision) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// Verdict is what the decisions about one key came to. Counts are tokens.
type Verdict struct {
	Asked, Admitted, Fallback, Refused, Unable float64
	// Excess is how many tokens too many passed in the worst interval, of those that regions admitted by their rights: what
	// instances admitted by themselves, while Redis was away, is left out. It is 0 if the limit was kept.
	Excess float64
	// Beyond is the same of what a process admitted by itself, of all the worst: its bound is the slice that it knew of, capacity and
	// rate, besides what its region admits by its rights.
	Beyond float64
	// Efficiency is what was admitted, divided by what one ideal bucket for the whole world would have admitted.
	Efficiency float64
	// Needless is the part of all requests that were refused in seconds in which that bucket refused nobody.
	Needless float64
}

func (v Verdict) String() string {
	return fmt.Sprintf("asked %.0f, admitted %.0f (%.0f without Redis), refused %.0f, unable %.0f; %.2f too many, %.2f beyond the slice of one that was alone; efficiency %.1f %%, needless refusals %.2f %%",
		v.Asked, v.Admitted, v.Fallback, v.Refused, v.Unable, v.Excess, v.Beyond, 100*v.Efficiency, 100*v.Needless)
}

// Judge looks at every interval of the decisions about one key with a limit of capacity tokens and rate tokens per second. They
// are in the order of time, as from ReadLogs, from processes with one clock.
func Judge(capacity, rate float64, all []Decision) Verdict {
	var v Verdict
	if len(all) == 0 {
		return v
	}
	first := all[0].Time.Add(-Horizon) // a decision may have been under way before
	rights, ideal := NewChecker(capacity, rate), NewIdeal(capacity, rate)
	alone := alone(capacity, rate, all)
	for i := range all {
		d := &all[i]
		cost, decided := float64(d.Cost), d.Time.Sub(first)
		began := max(0, decided-time.Duration(d.TookMicros)*time.Microsecond)
		v.Asked += cost
		ideal.Asked(cost, decided, d.Outcome != "allowed")
		switch {
		case d.Outcome == "unable":
			v.Unable += cost
		case d.Outcome != "allowed":
			v.Refused += cost
		case d.Source == "fallback":
			v.Fallback += cost
			alone[d.Log].Admitted(cost, began, decided)
		default:
			rights.Admitted(cost, began, decided)
		}
		if d.Outcome == "allowed" {
			v.Admitted += cost
		}
	}
	v.Excess = rights.Excess()
	for _, c := range alone {
		v.Beyond = max(v.Beyond, c.Excess())
	}
	v.Efficiency = v.Admitted / math.Max(1, ideal.Admitted())
	v.Needless = float64(ideal.Needless()) / float64(len(all))
	return v
}

// alone watches each process that decided by itself, by the largest slice it knew of: at least what one request costs.
func alone(capacity, rate float64, all []Decision) map[int]*Checker {
	share, least := map[int]int64{}, map[int]float64{}
	for i := range all {
		if d := &all[i]; d.Source == "fallback" && d.Outcome == "allowed" {
			share[d.Log] = max(share[d.Log], d.Share)
			least[d.Log] = max(least[d.Log], float64(d.Cost), 1)
		}
	}
	checkers := map[int]*Checker{}
	for log, s := range share {
		part := float64(s) / 1e6
		checkers[log] = NewChecker(max(capacity*part, least[log]), rate*part)
	}
	return checkers
}
