package agent

import "time"

// What a step costs in messages: a transfer is a row and its acknowledgement.
const (
	askMessages      = 1
	transferMessages = 2
)

// budget bounds the messages that one key may cost, as a token bucket.
type budget struct {
	left, burst float64
	at          time.Time
}

func (b *budget) refill(now time.Time, perSecond, burst float64) {
	if b.at.IsZero() {
		b.left = burst
	} else {
		b.left = min(burst, b.left+now.Sub(b.at).Seconds()*perSecond)
	}
	b.at, b.burst = now, burst
}

// spend takes so many messages off, or tells that there are not enough left.
func (b *budget) spend(messages float64) bool {
	if b.left < messages {
		return false
	}
	b.left -= messages
	return true
}

// owe takes off messages that have to be sent whatever is left: no row is given up. The next asks and loans wait for them.
func (b *budget) owe(messages float64) { b.left = max(b.left-messages, -b.burst) }

// plenty tells whether there is enough left for messages that are merely useful.
func (b *budget) plenty() bool { return b.left > b.burst/2 }

// mostScarce times larger loans, and so fewer, are made by the time that nothing is left: enough for what all messages of a
// minute can carry to be more than the whole rate.
const mostScarce = 10

// scarcity is how many times larger a loan has to be to be worth its messages: 1 while there are plenty.
func (b *budget) scarcity() float64 {
	if b.plenty() || b.burst <= 0 {
		return 1
	}
	return 1 + (mostScarce-1)*(1-2*max(b.left, 0)/b.burst)
}
