package agent

import "time"

// Policy is the parameters of the fast loop and of following advice. DefaultPolicy's were tuned in the simulator.
type Policy struct {
	// FastLoop off leaves only advice: no asks, no loans.
	FastLoop bool
	// Every is how often a hot key is looked at.
	Every time.Duration
	// Ahead is how far a region looks before its bucket runs dry, and what a donor's reserve covers.
	Ahead time.Duration
	// LoanHorizon is how long a loan should last the asker.
	LoanHorizon time.Duration
	// Deviations of a Poisson stream that reserves and needs allow for.
	Deviations float64
	// ReserveCap bounds a donor's reserve to a part of its slice; UrgentReserve is the part of the reserve that it keeps
	// from an asker that is refusing.
	ReserveCap, UrgentReserve float64
	// FillBelow: a bucket below this part of its capacity asks for what would overflow elsewhere, every FillEvery.
	FillBelow float64
	FillEvery time.Duration
	// Quantum is the smallest loan that is worth a message, as a part of the capacity.
	Quantum float64
	// ShareStep is the smallest move of share, as a part of the whole.
	ShareStep float64
	// Reaction is how long a region lives from its bucket when its demand returns, before help arrives: a donor keeps the
	// capacity for that.
	Reaction time.Duration
	// SmallTrips: a limit is small where its capacity is below so many round trips of its rate.
	SmallTrips float64
	// SmallLoans bounds the loans out of a small limit, as a part of the slice, unless the donor is idle.
	SmallLoans float64
	// Resend a row after this time without acknowledgement, then half as long again each time, at most ResendMax.
	Resend, ResendMax time.Duration
	// MessagesPerMinute bounds what one key may cost all regions together; MessageBurst what it may cost at once.
	MessagesPerMinute, MessageBurst float64
	// IdleAfter forgets a key that nobody uses, asks for or waits for.
	IdleAfter time.Duration
}

// DefaultPolicy gives the shipped parameters.
func DefaultPolicy() Policy {
	return Policy{
		FastLoop:      true,
		Every:         100 * time.Millisecond,
		Ahead:         250 * time.Millisecond,
		LoanHorizon:   time.Second,
		Deviations:    2,
		ReserveCap:    0.4,
		UrgentReserve: 0.5,
		FillBelow:     0.7,
		FillEvery:     time.Second,
		Quantum:       0.01,
		ShareStep:     0.02,
		Reaction:      200 * time.Millisecond,
		SmallTrips:    3,
		SmallLoans:    0.1,
		Resend:        300 * time.Millisecond,
		ResendMax:     10 * time.Second,

		MessagesPerMinute: 1490,
		MessageBurst:      120,
		IdleAfter:         2 * time.Minute,
	}
}
