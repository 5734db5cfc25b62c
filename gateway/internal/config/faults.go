package config

import "partidor.dev/partidor/shared/config"

// faults collects every fault, so that one run of -check-config shows them all.
type faults = config.Faults

// atLeast refuses numbers below low.
func atLeast[T int | int64 | float64](f *faults, field string, v, low T) {
	if v < low {
		f.Add(field, "%v, must be at least %v", v, low)
	}
}

// between refuses numbers outside low..high.
func between[T int | int64 | float64](f *faults, field string, v, low, high T) {
	if v >= low && v <= high {
		return // Written so that NaN is refused.
	}
	f.Add(field, "%v, must be from %v to %v", v, low, high)
}

// oneOf refuses words that are not on the list.
func oneOf(f *faults, field, v string, words ...string) {
	for _, w := range words {
		if v == w {
			return
		}
	}
	f.Add(field, "%q, must be one of %q", v, words)
}
