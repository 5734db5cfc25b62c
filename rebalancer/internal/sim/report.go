package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Summary is one scenario under one strategy over all seeds: means, except over-admission and fairness, which are the
// worst.
type Summary struct {
	Scenario          string   `json:"scenario"`
	About             string   `json:"about,omitempty"`
	Strategy          string   `json:"strategy"`
	Seeds             int      `json:"seeds"`
	Efficiency        float64  `json:"efficiency_percent"`
	RefusedWithRoom   float64  `json:"refused_with_room_percent"`
	OverAdmission     float64  `json:"over_admission_tokens"`
	Fairness          float64  `json:"worst_region"`
	Churn             float64  `json:"churn_per_hour"`
	MessagesPerMinute float64  `json:"messages_per_minute"`
	Missed            []string `json:"missed,omitempty"`
}

// Report is everything a run has found out.
type Report struct {
	Summaries []Summary `json:"summaries"`
	Results   []Result  `json:"results"`
}

// NewReport sums results up and checks the gates of strategy partidor.
func NewReport(scenarios []Scenario, results []Result) Report {
	rep := Report{Results: results}
	for _, s := range scenarios {
		for _, name := range StrategyNames() {
			of := func(strategy string) (out []Result) {
				for _, r := range results {
					if r.Scenario == s.Name && r.Strategy == strategy {
						out = append(out, r)
					}
				}
				return out
			}
			if runs := of(name); len(runs) > 0 {
				sum := summarize(s, name, runs)
				if name == NamePartidor && s.Gates != nil {
					sum.Missed = missed(s.Gates, runs, of(NameStatic))
				}
				rep.Summaries = append(rep.Summaries, sum)
			}
		}
	}
	return rep
}

func summarize(s Scenario, strategy string, runs []Result) Summary {
	sum := Summary{Scenario: s.Name, About: s.About, Strategy: strategy, Seeds: len(runs), Fairness: runs[0].Outcome.Fairness}
	for i := range runs {
		o := &runs[i].Outcome
		n := float64(len(runs))
		sum.Efficiency += 100 * o.Efficiency() / n
		sum.RefusedWithRoom += 100 * o.RefusedWithRoom() / n
		sum.OverAdmission = max(sum.OverAdmission, o.Depth)
		sum.Fairness = min(sum.Fairness, o.Fairness)
		sum.Churn += o.Churn() / n
		sum.MessagesPerMinute += o.MessagesPerMinute() / n
	}
	return sum
}

// missed lists the gates that runs miss. Efficiency, refusals and messages are judged over all seeds together, as the table
// shows them; over-admission by the worst seed.
func missed(g *Gates, runs, static []Result) (out []string) {
	var all, base Outcome
	seeds := make([]string, len(runs))
	for i := range runs {
		all = all.add(runs[i].Outcome)
		seeds[i] = strconv.FormatUint(runs[i].Seed, 10)
	}
	var compare *Outcome
	if len(static) == len(runs) {
		for i := range static {
			base = base.add(static[i].Outcome)
		}
		compare = &base
	}
	if err := g.Check(all, compare); err != nil {
		out = append(out, fmt.Sprintf("seed %s: %s", strings.Join(seeds, ","), strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	return out
}

// Missed counts the gates that were missed.
func (r *Report) Missed() (n int) {
	for i := range r.Summaries {
		n += len(r.Summaries[i].Missed)
	}
	return n
}

// WriteTable writes a table for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tstrategy\tefficiency %\trefused with room %\tover-admission\tworst region\tchurn/h\tmessages/min\t")
	for i := range r.Summaries {
		s := &r.Summaries[i]
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.4f\t%.3f\t%.3f\t%.1f\t%.0f\t\n", s.Scenario, s.Strategy, s.Efficiency,
			s.RefusedWithRoom, s.OverAdmission, s.Fairness, s.Churn, s.MessagesPerMinute)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for i := range r.Summaries {
		for _, m := range r.Summaries[i].Missed {
			if _, err := fmt.Fprintf(w, "MISSED %s %s\n", r.Summaries[i].Scenario, m); err != nil {
				return fmt.Errorf("write table: %w", err)
			}
		}
	}
	return nil
}

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
