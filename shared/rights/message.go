package rights

import "partidor.dev/partidor/shared/limit"

// Row is what travels from a giver to a receiver about one key: everything ever given, cumulative (R4). Both incarnations
// travel too: the sender's own and the receiver's as the sender knows it.
type Row struct {
	From, To    string
	Incarnation int64
	Receiver    int64
	Epoch       int64
	// Base is the sender's base share of the key.
	Base limit.Share
	Sent Sent
}

// Ack answers a Row after the step that applied it: settled, not kept (R6).
type Ack struct {
	From, To    string
	Incarnation int64
	Receiver    int64
	Epoch       int64
	Received    Received
}

// Void says: refuse my incarnations below this one, and answer with all your counters of our pair (R8).
type Void struct {
	From, To    string
	Incarnation int64
}

// Answer to a Void: every counter of the pair as the answering region keeps them (R9).
type Answer struct {
	From, To    string
	Incarnation int64
	// Receiver is the incarnation that is answered.
	Receiver int64
	Epoch    int64
	Base     limit.Share
	Out      Sent
	In       Received
	Acked    Received
}

// Verdict tells what became of a message.
type Verdict uint8

const (
	// Applied: taken in whole. Repeating it changes nothing.
	Applied Verdict = iota
	// Inactive: the region is fenced or re-learning and accepts nothing; the sender keeps it and sends it again.
	Inactive
	// Outdated: an incarnation in it is lower than the one known here. It will never be accepted.
	Outdated
	// Ahead: an incarnation in it is higher than the one known here. It waits until the new one has been voided and answered.
	Ahead
	// Foreign: another row epoch.
	Foreign
	// Absurd: it claims what cannot be, such as more acknowledged than was ever lent. Nothing is changed.
	Absurd
	// Lost: the key is known to have moved and its rights are missing or unreadable. Only a new incarnation helps.
	Lost
)

var verdictNames = [...]string{"applied", "inactive", "outdated", "ahead", "foreign", "absurd", "lost"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// meet compares the incarnations in a message with those known here (R7).
func meet(incarnation, known, receiver, own int64) Verdict {
	switch {
	case incarnation < known, receiver < own:
		return Outdated
	case incarnation > known, receiver > own:
		return Ahead
	}
	return Applied
}

// ParseVerdict reads what String wrote.
func ParseVerdict(s string) (Verdict, bool) {
	for i, name := range verdictNames {
		if name == s {
			return Verdict(i), true
		}
	}
	return 0, false
}
