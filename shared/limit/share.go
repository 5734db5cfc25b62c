package limit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Share is a region's part of a key's limit in parts per million. All regions' shares of one key add up to Whole.
type Share int64

// Whole is the sum of all shares of one key.
const Whole Share = 1_000_000

// Percent is the share as a number from 0 to 100, for people.
func (s Share) Percent() float64 { return float64(s) / 10_000 }

// Split is every region's share of one key, by region name.
type Split map[string]Share

// Sum of all shares.
func (s Split) Sum() Share {
	var sum Share
	for _, v := range s {
		sum += v
	}
	return sum
}

// Regions in name order.
func (s Split) Regions() []string { return slices.Sorted(maps.Keys(s)) }

// Validate demands at least one region, no negative share and a sum of exactly Whole.
func (s Split) Validate() error {
	if len(s) == 0 {
		return fmt.Errorf("split: no regions")
	}
	for _, name := range s.Regions() {
		if err := ValidateName("split: region", name); err != nil {
			return err
		}
		if v := s[name]; v < 0 || v > Whole {
			return fmt.Errorf("split: region %s: share %d, must be from 0 to %d", name, v, Whole)
		}
	}
	if sum := s.Sum(); sum != Whole {
		return fmt.Errorf("split: shares add up to %d, must be exactly %d", sum, Whole)
	}
	return nil
}

// Apportion divides Whole over weights in proportion, by largest remainder, so that the parts are integers that add up
// exactly. Ties go to the lower index. Weights must be finite and not negative; all zero means equal parts.
func Apportion(weights []float64) []Share {
	return ApportionOf(Whole, weights)
}

// ApportionOf divides total over weights as Apportion does.
func ApportionOf(total Share, weights []float64) []Share {
	parts := make([]Share, len(weights))
	if len(weights) == 0 || total <= 0 {
		return parts
	}
	var sum float64
	for _, w := range weights {
		sum += w
	}
	type rest struct {
		i int
		r float64
	}
	rests := make([]rest, len(weights))
	left := total
	for i, w := range weights {
		exact := float64(total) / float64(len(weights))
		if sum > 0 {
			exact = float64(total) * (w / sum)
		}
		parts[i] = min(Share(exact), left)
		left -= parts[i]
		rests[i] = rest{i, exact - float64(parts[i])}
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.r, a.r) })
	for n := 0; left > 0; n = (n + 1) % len(rests) {
		parts[rests[n].i]++
		left--
	}
	return parts
}
