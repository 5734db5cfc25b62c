package sim

import (
	"math"
	"math/rand/v2"
)

// Streams keep the random courses of one seed apart, so that what one part draws does not shift another's.
const (
	streamArrivals = 1
	streamNetwork  = 77
	streamOnOff    = 100
	streamNoise    = 500
	streamStrategy = 900
	streamPart     = 1 << 32
)

// poisson draws a number of arrivals with the given mean; above 60 by the normal approximation.
func poisson(r *rand.Rand, mean float64) int {
	if mean <= 0 {
		return 0
	}
	if mean > 60 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	least, p, n := math.Exp(-mean), 1.0, 0
	for {
		if p *= r.Float64(); p <= least {
			return n
		}
		n++
	}
}
