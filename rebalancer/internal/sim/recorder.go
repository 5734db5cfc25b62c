package sim

import (
	"time"

	"partidor.dev/partidor/shared/limit"
)

// recorder samples a run for plots. A nil recorder records nothing.
type recorder struct {
	every    time.Duration
	next     time.Duration
	offered  []float64
	admitted []float64
	Samples  []Sample
}

// Sample is one moment of a plot: rates since the last one, shares now.
type Sample struct {
	At       time.Duration
	Offered  []float64
	Admitted []float64
	Shares   []limit.Share
}

// plotPoints is how many samples a plot has at most.
const plotPoints = 600

func newRecorder(s *Scenario) *recorder {
	k := len(s.Regions)
	every := max(s.Step, s.Duration/plotPoints)
	return &recorder{every: every, next: every, offered: make([]float64, k), admitted: make([]float64, k)}
}

func (r *recorder) offer(region, n int) {
	if r != nil {
		r.offered[region] += float64(n)
	}
}

func (r *recorder) admit(region, n int) {
	if r != nil {
		r.admitted[region] += float64(n)
	}
}

func (r *recorder) step(t time.Duration, s Strategy) {
	if r == nil || t < r.next {
		return
	}
	sample := Sample{At: t, Shares: append([]limit.Share(nil), s.Shares()...)}
	for i := range r.offered {
		sample.Offered = append(sample.Offered, r.offered[i]/r.every.Seconds())
		sample.Admitted = append(sample.Admitted, r.admitted[i]/r.every.Seconds())
		r.offered[i], r.admitted[i] = 0, 0
	}
	r.Samples = append(r.Samples, sample)
	r.next += r.every
}
