package home

import "time"

// Budget is how long an asker waits for a reply unless configured otherwise.
const Budget = 150 * time.Millisecond

// Hold tells whether the home keeps a request that finds no token, and for how long: until the next token comes, if the
// reply then still reaches the asker within what is left of its budget. trip is the way back, about.
func Hold(nextToken, left, trip time.Duration) (wait time.Duration, ok bool) {
	if nextToken <= 0 || nextToken > left-trip {
		return 0, false
	}
	return nextToken, true
}

// Silence is how long an asker that was refused need not ask again: until a request sent then would reach the home when its
// next token comes, less what the home would hold it for.
func Silence(nextToken, trip, budget time.Duration) time.Duration {
	return max(0, nextToken-trip-max(0, budget-2*trip))
}
