package limit

// Slice is what one region enforces of a key's limit: capacity C·share in tokens and rate R·share in tokens per second.
// Both are real numbers; a slice smaller than one token still fills, more slowly.
type Slice struct {
	Capacity float64
	Rate     float64
}

// SliceOf is the part of the rule's limit that belongs to share.
func (r *Rule) SliceOf(share Share) Slice {
	return Slice{
		Capacity: float64(r.Capacity) * float64(share) / float64(Whole),
		Rate:     float64(r.Refill) / float64(r.PeriodSeconds) * float64(share) / float64(Whole),
	}
}
