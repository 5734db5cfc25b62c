package sim

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// Traffic makes the load of one region: a mean arrival rate over time, in requests per second.
type Traffic interface {
	// Load returns the rate at each time of a run. seed and region choose the random course, the same for every
	// strategy; times are asked in rising order.
	Load(seed uint64, region int, duration time.Duration) func(t time.Duration) float64
}

// Constant load.
type Constant float64

// Load implements Traffic.
func (c Constant) Load(uint64, int, time.Duration) func(time.Duration) float64 {
	return func(time.Duration) float64 { return float64(c) }
}

// Point of a course.
type Point struct {
	At   time.Duration
	Rate float64
}

type (
	// Steps holds each point's rate until the next point.
	Steps []Point
	// Ramp goes from point to point in straight lines.
	Ramp []Point
)

// Load implements Traffic.
func (s Steps) Load(uint64, int, time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		i := sort.Search(len(s), func(i int) bool { return s[i].At > t })
		if i == 0 {
			return 0
		}
		return s[i-1].Rate
	}
}

// Load implements Traffic.
func (r Ramp) Load(uint64, int, time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		i := sort.Search(len(r), func(i int) bool { return r[i].At > t })
		switch {
		case len(r) == 0:
			return 0
		case i == 0:
			return r[0].Rate
		case i == len(r):
			return r[i-1].Rate
		}
		a, b := r[i-1], r[i]
		return a.Rate + (b.Rate-a.Rate)*float64(t-a.At)/float64(b.At-a.At)
	}
}

// Diurnal is a cosine around Mean: Mean·(1 + Amplitude·cos 2π(t/Period − Phase)).
type Diurnal struct {
	Mean, Amplitude, Phase float64
	Period                 time.Duration
}

// Load implements Traffic.
func (d Diurnal) Load(uint64, int, time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		return max(0, d.Mean*(1+d.Amplitude*math.Cos(2*math.Pi*(float64(t)/float64(d.Period)-d.Phase))))
	}
}

// Square swings between High and Low; it begins with High unless Phase is a half.
type Square struct {
	High, Low, Phase float64
	Period           time.Duration
}

// Load implements Traffic.
func (s Square) Load(uint64, int, time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		at := float64(t)/float64(s.Period) + s.Phase
		if at-math.Floor(at) < 0.5 {
			return s.High
		}
		return s.Low
	}
}

// OnOff switches between On and Off after periods with heavy (Pareto) tails of shape Alpha > 1 and the given means. An
// on period ends after MaxOn, an off period after MaxOff, at the latest.
type OnOff struct {
	On, Off         float64
	MeanOn, MeanOff time.Duration
	MaxOn, MaxOff   time.Duration
	Alpha           float64
}

// Load implements Traffic.
func (o OnOff) Load(seed uint64, region int, duration time.Duration) func(time.Duration) float64 {
	r := rand.New(rand.NewPCG(seed, streamOnOff+uint64(region)))
	on := r.Float64() < o.MeanOn.Seconds()/(o.MeanOn+o.MeanOff).Seconds()
	var edges []time.Duration
	first := on
	for t := time.Duration(0); t < duration; on = !on {
		mean, most := o.MeanOff, o.MaxOff
		if on {
			mean, most = o.MeanOn, o.MaxOn
		}
		least := mean.Seconds() * (o.Alpha - 1) / o.Alpha
		period := min(least/math.Pow(1-r.Float64(), 1/o.Alpha), most.Seconds())
		t += time.Duration(period * float64(time.Second))
		edges = append(edges, t)
	}
	return func(t time.Duration) float64 {
		i := sort.Search(len(edges), func(i int) bool { return edges[i] > t })
		if (i%2 == 0) == first {
			return o.On
		}
		return o.Off
	}
}

// Noisy multiplies another traffic by a log-normal course with mean 1: deviation Sigma, correlated over Correlation.
type Noisy struct {
	Traffic     Traffic
	Sigma       float64
	Correlation time.Duration
}

// Load implements Traffic.
func (n Noisy) Load(seed uint64, region int, duration time.Duration) func(time.Duration) float64 {
	r := rand.New(rand.NewPCG(seed, streamNoise+uint64(region)))
	factors := make([]float64, int(duration/time.Second)+2)
	keep := math.Exp(-1 / n.Correlation.Seconds())
	x := r.NormFloat64() * n.Sigma
	for i := range factors {
		x = keep*x + math.Sqrt(1-keep*keep)*n.Sigma*r.NormFloat64()
		factors[i] = math.Exp(x - n.Sigma*n.Sigma/2)
	}
	load := n.Traffic.Load(seed, region, duration)
	return func(t time.Duration) float64 { return load(t) * factors[min(int(t/time.Second), len(factors)-1)] }
}

// Sum adds several traffics up.
type Sum []Traffic

// Load implements Traffic.
func (s Sum) Load(seed uint64, region int, duration time.Duration) func(time.Duration) float64 {
	loads := make([]func(time.Duration) float64, len(s))
	for i, t := range s {
		loads[i] = t.Load(seed+uint64(i)*streamPart, region, duration)
	}
	return func(t time.Duration) (sum float64) {
		for _, l := range loads {
			sum += l(t)
		}
		return sum
	}
}

// Scaled is a traffic times a factor.
type Scaled struct {
	Traffic
	Factor float64
}

// Load implements Traffic.
func (s Scaled) Load(seed uint64, region int, duration time.Duration) func(time.Duration) float64 {
	load := s.Traffic.Load(seed, region, duration)
	return func(t time.Duration) float64 { return s.Factor * load(t) }
}
