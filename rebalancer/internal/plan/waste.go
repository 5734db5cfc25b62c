package plan

// Waste is how many tokens per second of a key were refused in the latest window although the limit's rate would have
// admitted them worldwide: what a perfect split would have saved. What a bucket had in store is not counted, so it is never
// more than the truth. 0 where a region is silent: the world may be full.
func Waste(d *Demand) float64 {
	if !plannable(d, len(d.Loads)) {
		return 0
	}
	admitted, refused := 0.0, 0.0
	for i := range d.Loads {
		l := &d.Loads[i]
		if !l.Known {
			return 0
		}
		admitted += max(0, l.Offered-l.Refused)
		refused += max(0, l.Refused)
	}
	return max(0, min(refused, rateOf(d.Rule)-admitted))
}
