package plan

// Early tells whether a key is worth a plan before its cycle ends: a region refuses a good part of what it is offered
// while, worldwide, the limit admits clearly less than it could.
func Early(d *Demand, p Parameters) bool {
	if d.Rule == nil || !plannable(d, len(d.Loads)) {
		return false
	}
	rate := rateOf(d.Rule)
	admitted, refused := 0.0, 0.0
	starved := false
	for i := range d.Loads {
		l := &d.Loads[i]
		if !l.Known {
			return false // what a silent region uses is unknown, so the world may be full
		}
		admitted += max(0, l.Offered-l.Refused)
		refused += l.Refused
		starved = starved || l.Refused > earlyRefused*l.Offered
	}
	room := rate - admitted
	return starved && room > earlyRoom*rate && refused*p.Cycle.Seconds() >= 1
}

const (
	// earlyRefused is the part of a region's load that must be refused, earlyRoom the part of the limit left unused.
	earlyRefused = 0.02
	earlyRoom    = 0.1
)
