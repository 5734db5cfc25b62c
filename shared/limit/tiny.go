package limit

// tinyRequests: a limit is tiny where its capacity is below this many requests per region.
const tinyRequests = 2

// Tiny tells whether the limit is too small to be divided among so many regions: slices of less than two tokens admit a
// request now and then, or never. All rights to a tiny limit sit in one region, its home; the others consume there. Window
// algorithms are divided whatever their size, since they are never consumed elsewhere.
func (r *Rule) Tiny(regions int) bool {
	return r.Algorithm == TokenBucket && r.Shards <= 1 && regions > 1 && r.Capacity < tinyRequests*int64(regions)
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
