package sim

import (
	"math"
	"time"
)

// checker judges a run against one ideal bucket and against the limit itself.
type checker struct {
	rate, capacity float64
	// ideal is the level of one bucket without distance; virtual that of a bucket fed with every admission there was.
	ideal, virtual float64
	refilled       time.Duration

	offered, admitted, idealAdmitted float64
	// depth is how far below zero virtual ever fell, in tokens.
	depth float64
	// perRegion counts for fairness.
	regionAdmitted, regionIdeal []float64

	// second is the running second: refusals while the ideal bucket refused nobody are refusals while there was room.
	second                   time.Duration
	secOffered, secRefused   float64
	secIdealRefused          float64
	calmBefore               bool
	calmOffered, calmRefused float64
}

func newChecker(s *Scenario) *checker {
	c := &checker{rate: s.rate(), capacity: s.capacity(), calmBefore: true}
	c.ideal, c.virtual = c.capacity, c.capacity
	c.regionAdmitted, c.regionIdeal = make([]float64, len(s.Regions)), make([]float64, len(s.Regions))
	return c
}

// refill brings both buckets to t and closes the seconds that are over.
func (c *checker) refill(t time.Duration) {
	c.fill(t)
	for t >= c.second+time.Second {
		c.endSecond()
	}
}

func (c *checker) fill(t time.Duration) {
	gain := c.rate * (t - c.refilled).Seconds()
	c.ideal = min(c.capacity, c.ideal+gain)
	c.virtual = min(c.capacity, c.virtual+gain)
	c.refilled = t
}

// arrive lets n requests of a region reach the ideal bucket.
func (c *checker) arrive(region, n int) {
	c.offered += float64(n)
	c.secOffered += float64(n)
	got := min(float64(n), math.Floor(c.ideal+tolerance))
	c.ideal -= got
	c.idealAdmitted += got
	c.regionIdeal[region] += got
	c.secIdealRefused += float64(n) - got
}

// charge counts n tokens spent somewhere at time t.
func (c *checker) charge(t time.Duration, n int) {
	c.fill(t)
	c.virtual -= float64(n)
	c.depth = max(c.depth, -c.virtual)
}

// serve counts n requests of a region that were let through; refuse those that were not.
func (c *checker) serve(region, n int) {
	c.admitted += float64(n)
	c.regionAdmitted[region] += float64(n)
}

func (c *checker) refuse(n int) { c.secRefused += float64(n) }

// endSecond closes a second. It is calm if the ideal bucket refused nobody in it, nor in the one before.
func (c *checker) endSecond() {
	calm := c.secIdealRefused == 0
	if calm && c.calmBefore {
		c.calmOffered += c.secOffered
		c.calmRefused += c.secRefused
	}
	c.calmBefore = calm
	c.secOffered, c.secRefused, c.secIdealRefused = 0, 0, 0
	c.second += time.Second
}

// tolerance is the float noise of summing refills.
const tolerance = 1e-9

// fairness is the worst region's admissions relative to what the ideal bucket gave it; 1 where nobody is worse off.
func (c *checker) fairness() float64 {
	worst := math.Inf(1)
	for i, ideal := range c.regionIdeal {
		if ideal > 0 {
			worst = min(worst, c.regionAdmitted[i]/ideal)
		}
	}
	if math.IsInf(worst, 1) {
		return 1
	}
	return worst
}
