package agent

import (
	"math"
	"time"
)

// demand estimates what a region is offered of one key, in tokens per second.
type demand struct {
	at time.Time
	// now is the rate of the last observation, fast and slow follow it with time constants of 0.45 and 1.5 s, usual with
	// 15 s; peak holds the highest of fast for half a minute or so, high for a few minutes.
	now, fast, slow, usual, peak, high float64
	// window is how long the last observation took, in seconds.
	window float64
	// refused tokens not yet asked for elsewhere.
	refused float64
}

const (
	fastTime  = 450 * time.Millisecond
	slowTime  = 1500 * time.Millisecond
	usualTime = 15 * time.Second
	peakTime  = 25 * time.Second
	highTime  = 150 * time.Second
	// reportsTake is when an instance has surely said what it counts of a key that is not hot.
	reportsTake = 4 * time.Second
)

// observe takes in the rate offered since the last time, in tokens per second, and the tokens refused.
func (d *demand) observe(now time.Time, rate, refused float64) {
	elapsed := now.Sub(d.at)
	d.refused += refused
	if d.at.IsZero() {
		d.at, d.now, d.fast, d.slow, d.usual, d.peak, d.high = now, rate, rate, rate, rate, rate, rate
		return
	}
	if elapsed <= 0 {
		return
	}
	d.at, d.now = now, rate
	d.window = elapsed.Seconds()
	follow(&d.fast, d.now, elapsed, fastTime)
	follow(&d.slow, d.now, elapsed, slowTime)
	follow(&d.usual, d.now, elapsed, usualTime)
	d.peak = math.Max(d.fast, d.peak*math.Exp(-elapsed.Seconds()/peakTime.Seconds()))
	d.high = math.Max(d.fast, d.high*math.Exp(-elapsed.Seconds()/highTime.Seconds()))
	if d.peak < 1e-4 {
		d.peak = 0
	}
}

func follow(v *float64, x float64, elapsed, constant time.Duration) {
	*v += (x - *v) * (1 - math.Exp(-elapsed.Seconds()/constant.Seconds()))
}

// told tells whether the demand is known: it was observed, or nothing was said of the key for longer than reports take.
func (d *demand) told(now, since time.Time) bool {
	return !d.at.IsZero() || now.Sub(since) > reportsTake
}

// surge is the rate that the last observation shows even if chance made it a standard deviation too high: a step in the
// load shows here at once, while fast still follows.
func (d *demand) surge() float64 {
	if d.window <= 0 {
		return 0
	}
	return d.now - math.Sqrt(d.now/d.window)
}
