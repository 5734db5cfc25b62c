package foreign

import (
	"fmt"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// Result is what a file says in our words.
type Result struct {
	Rules []rulesfile.Rule
	// Notes say what could not be carried over, and what has changed its meaning.
	Notes []Note
}

// Note is about one place of the file. Lost tells that a limit there has no counterpart in Rules.
type Note struct {
	Path string `json:"path"`
	Text string `json:"text"`
	Lost bool   `json:"lost"`
}

func (r *Result) note(path, format string, args ...any) {
	r.Notes = append(r.Notes, Note{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (r *Result) lose(path, format string, args ...any) {
	r.Notes = append(r.Notes, Note{Path: path, Text: fmt.Sprintf(format, args...), Lost: true})
}

// add appends a rule that is valid and the first of its key.
func (r *Result) add(path string, rule rulesfile.Rule) {
	if err := rule.Validate(); err != nil {
		r.lose(path, "%v", err)
		return
	}
	for _, other := range r.Rules {
		if other.Tenant == rule.Tenant && other.Route == rule.Route {
			r.lose(path, "tenant %s and route %s have a limit already; one key has one rule", rule.Tenant, rule.Route)
			return
		}
	}
	r.Rules = append(r.Rules, rule)
}

// window is a fixed window of another gateway: quota per length. Both others align their windows with the clock.
type window struct {
	quota   int64
	seconds int64
	name    string
}

// rule is the fixed window with the same boundaries where we have it.
func (w window) rule() rulesfile.Rule {
	r := rulesfile.Rule{Capacity: w.quota, Algorithm: limit.FixedWindow}
	switch w.name {
	case "hour":
		r.Window = limit.CalendarHour
	case "day":
		r.Window = limit.CalendarDay
	case "month":
		r.Window = limit.CalendarMonth
	default:
		r.WindowSeconds = w.seconds
	}
	return r
}

var unitSeconds = map[string]int64{"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_592_000, "year": 31_536_000}

// tightest is the window that admits least in the long run: a key has one rule, and the others would only shape bursts.
func tightest(list []window) (w window) {
	for i, c := range list {
		if i == 0 || float64(c.quota)/float64(c.seconds) < float64(w.quota)/float64(w.seconds) {
			w = c
		}
	}
	return w
}
