package lease

import "time"

const (
	// maxLives bounds the lives of instances of one region that an Ear tells apart; beyond it the region counts as one that does
	// not fence.
	maxLives = 4096
	// forgetAfter is how long a life that fences is remembered: longer than any message is on its way.
	forgetAfter = 10 * time.Minute
)

// Ear is a voter that stands for many processes: each of them hears every renewal, and one of them answers. Hearing counts as
// answering, so whichever of them agrees to a minting has waited long enough for all. Not safe for concurrent use.
type Ear struct {
	terms   Terms
	start   time.Duration
	regions map[string]*heard
}

// heard is what has been heard of one region.
type heard struct {
	last, lease time.Duration
	lives       map[Life]voice
}

// Life names one life of one instance.
type Life struct {
	Instance string
	Started  int64
}

// voice is what a life said last, by its own stamps: messages overtake each other.
type voice struct {
	heard, stamp time.Duration
	// fences: it keeps to its floor when its lease is over.
	fences bool
}

// NewEar begins at start: what went before is unknown, and counts as an answer to everybody.
func NewEar(start time.Duration, terms Terms) *Ear {
	return &Ear{terms: terms, start: start, regions: map[string]*heard{}}
}

// Hear takes in what an instance calls.
func (e *Ear) Hear(now time.Duration, c Call, who Life) {
	h := e.regions[c.Region]
	if h == nil {
		h = &heard{lives: map[Life]voice{}}
		e.regions[c.Region] = h
	}
	h.last, h.lease = now, max(h.lease, c.Lease)
	switch v, known := h.lives[who]; {
	case known && c.Stamp < v.stamp:
	case known || len(h.lives) < maxLives:
		h.lives[who] = voice{now, c.Stamp, c.Fences}
	default:
		for life, v := range h.lives {
			if v.fences && now-v.heard > forgetAfter {
				delete(h.lives, life)
			}
		}
	}
}

// Wait is how long a region must have been silent before its share may be taken over.
func (e *Ear) Wait(region string) time.Duration {
	lease := e.terms.Lease
	if h := e.regions[region]; h != nil {
		lease = max(lease, h.lease)
	}
	return lease + e.terms.Margin
}

// Silent tells whether a region's lease has surely ended as far as was heard here.
func (e *Ear) Silent(now time.Duration, region string) bool {
	last := e.start
	if h := e.regions[region]; h != nil {
		last = max(last, h.last)
	}
	return now-last > e.Wait(region)
}

// Fences tells whether every instance of a region that was ever heard keeps to its floor when its lease is over; known is
// false if none was.
func (e *Ear) Fences(region string) (fences, known bool) {
	h := e.regions[region]
	if h == nil {
		return false, false
	}
	for _, v := range h.lives {
		if !v.fences {
			return false, true
		}
	}
	return len(h.lives) < maxLives, true
}
