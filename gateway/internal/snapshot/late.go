package snapshot

import (
	"math"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Earlier is a base share that a region had before a change of the base split, until that came into force.
type Earlier struct {
	Share limit.Share
	Until time.Time
}

// past is what one change of the base split replaced in the own region: its base share, and whether it was home to tiny limits.
type past struct {
	until time.Time
	base  limit.Share
	home  bool
}

// pastOf puts together what the regions had before each change. Only what could make something late is kept.
func pastOf(own, home string, regions []Region) (all []past) {
	var times []time.Time
	for i := range regions {
		for _, e := range regions[i].Earlier {
			times = append(times, e.Until)
		}
	}
	late := false
	for _, until := range times {
		before, base, now := limit.Split{}, limit.Share(0), limit.Share(0)
		for i := range regions {
			r := &regions[i]
			share := r.before(until)
			before[r.Name] = share
			if r.Name == own {
				base, now = share, r.Base
			}
		}
		p := past{until: until, base: base, home: before.Home() == own}
		late = late || p.base < now || !p.home && home == own
		all = append(all, p)
	}
	if !late {
		return nil
	}
	return all
}

// before is the base share of a region just before until.
func (r *Region) before(until time.Time) limit.Share {
	i := slices.IndexFunc(r.Earlier, func(e Earlier) bool { return !e.Until.Before(until) })
	if i < 0 {
		return r.Base
	}
	return r.Earlier[i].Share
}

// Late is the part of m's base share that at now the base split has brought within the last window of m's rule (of a token bucket: within
// its time to fill). Another region may have used as much under the split before, so windows do not count it yet, and a bucket
// that is not there was not full of it. The least of all base shares in that time is what is not late. A key that has moved does
// not follow the base split.
func (s *Snapshot) Late(m *Match, now time.Time) limit.Share {
	if len(s.past) == 0 || m.Moved || m.Rule == nil {
		return 0
	}
	span, least := span(m.Rule), m.Base
	for i := range s.past {
		p := &s.past[i]
		switch {
		case now.Sub(p.until) >= span:
		case m.Home == "":
			least = min(least, p.base)
		case !p.home:
			least = 0
		}
	}
	return m.Base - least
}

// span is how long what was used of a rule counts.
func span(r *limit.Rule) time.Duration {
	if seconds := r.PolicyWindow(); seconds < math.MaxInt64/int64(time.Second) {
		return time.Duration(seconds) * time.Second
	}
	return math.MaxInt64
}
