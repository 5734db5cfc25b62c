package agent

import (
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// RowMessage is a row on its way, with the sender's spare tokens.
type RowMessage struct {
	Key limit.Key
	Row rights.Row
	// Spare is how many tokens the sender could lend now.
	Spare float64
}

// AckMessage is an acknowledgement on its way.
type AckMessage struct {
	Key   limit.Key
	Ack   rights.Ack
	Spare float64
}

// Ask is what a region would like of a peer. It stands until Life is over or a later one replaces it.
type Ask struct {
	Key      limit.Key
	From, To string
	// Need in tokens, now. Flow in tokens per second, for as long as the ask stands.
	Need, Flow float64
	// Rate in tokens per second: share is wanted.
	Rate float64
	// Fill in tokens, of those that would overflow.
	Fill float64
	// Urgent: the asker is refusing.
	Urgent bool
	Life   time.Duration
	// Spare is how many tokens the sender could lend now. An Ask that asks for nothing only says so.
	Spare float64
}

func (a *Ask) empty() bool { return a.Need <= 0 && a.Flow <= 0 && a.Rate <= 0 && a.Fill <= 0 }

// Output is what the agent wants done. Steps are executed in any order, each answered by Reported or Failed; messages may be
// lost.
type Output struct {
	Steps []rights.Step
	Rows  []RowMessage
	Acks  []AckMessage
	Asks  []Ask
}
