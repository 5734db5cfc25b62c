package agent

import "time"

// budget bounds the messages that one key may cost, as a token bucket.
type budget struct {
	left float64
	at   time.Time
}

// spend takes one message, or tells that there is none left.
func (b *budget) spend(now time.Time, perSecond, burst float64) bool {
	if b.at.IsZero() {
		b.left = burst
	} else {
		b.left = min(burst, b.left+now.Sub(b.at).Seconds()*perSecond)
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
