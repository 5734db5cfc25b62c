package limit

const (
	// tinyRequests: a limit is tiny where its capacity is below this many of its dearest requests per region,
	tinyRequests = 2
	// tinyRate: and it refills for no more than so many of them per second. Faster ones would cost too many messages.
	tinyRate = 10
	// briefPart: a burst of at most this part of a second of the rate is used up before help can arrive from anywhere.
	briefPart = 100
)

// Tiny tells whether the limit is too small to be divided among so many regions: slices of less than two of its dearest
// requests admit one now and then, or never. All rights to a tiny limit sit in one region, its home; the others consume there.
// A tiny window stays at its first home: moved, it would be in force nowhere for a whole window.
func (r *Rule) Tiny(regions int) bool {
	n, cost := int64(regions), r.LargestCost()
	if r.Shards > 1 || n < 2 || r.Capacity/cost >= tinyRequests*n {
		return false
	}
	if r.Algorithm != TokenBucket {
		return true
	}
	// Equal shares of exactly one request each round to a little less.
	return ceilMulDiv(r.Capacity, 1, cost) <= n || ceilMulDiv(r.Refill, 1, cost) <= tinyRate*r.PeriodSeconds
}

// Still tells whether a limit's shares stay where they are, short of pins and drains, because moving them costs more than it
// brings: it is as small as a tiny one but too fast for a home, or its burst lasts for milliseconds. What a slice admits then
// depends on the few tokens that it holds, not on its rate.
func (r *Rule) Still(regions int) bool {
	if r.Algorithm != TokenBucket || r.Shards > 1 || r.Tiny(regions) {
		return false
	}
	return r.Capacity/r.LargestCost() < tinyRequests*int64(regions) || r.Capacity <= r.Refill/r.PeriodSeconds/briefPart
}

// Home is the region where the rights to a tiny limit sit until they are first moved: the one with the largest share, the
// first by name among equals. Every part knows it from the base split alone. While a change of the base split is under way
// the shares add up to less than Whole; then a region is the home only if no other can end up larger, else nobody is ("").
// So two regions never both take themselves for it, whichever of the two splits each has heard of.
func (s Split) Home() string {
	home := ""
	for _, name := range s.Regions() {
		if home == "" || s[name] > s[home] {
			home = name
		}
	}
	missing := Whole - s.Sum()
	for name, share := range s {
		if missing > 0 && name != home && share+missing >= s[home] {
			return ""
		}
	}
	return home
}

// BaseOf is a region's share of a key that has never moved: its share of s, the base split, or all or nothing where the rule
// is tiny.
func (s Split) BaseOf(r *Rule, region string) Share {
	switch {
	case !r.Tiny(len(s)):
		return s[region]
	case s.Home() == region:
		return Whole
	}
	return 0
}
