package wire

import (
	"errors"
	"fmt"

	"partidor.dev/partidor/shared/limit"
)

// Void says that the sender lives under a new incarnation: refuse lower ones, and answer with every counter of the pair, of
// every key or of Keys alone. The Header's Incarnation is the new number. It is repeated until answered.
type Void struct {
	Header
	To string `json:"to"`
	// Keys limits the new life to these; empty means all of the region's.
	Keys []KeyName `json:"keys,omitempty"`
	// Moved is how many keys the sender knows to have moved, by the ledger or by hearsay.
	Moved int `json:"moved,omitempty"`
	// Probe asks for nothing but an Answer with Known, where the receiver knows of a later life of the sender: somebody has
	// acted in its name while it was away.
	Probe bool `json:"probe,omitempty"`
	// Dead: a leader speaks in the name of a region that an operator has declared dead. Proxy: of one that has fallen silent; the
	// receiver voids and answers only if it agrees that the region's lease is over, and says so by Agreed. Either way the number
	// is that of all of the region, also where Keys are named.
	Dead  bool `json:"dead,omitempty"`
	Proxy bool `json:"proxy,omitempty"`
}

// KeyName names a key.
type KeyName struct {
	Tenant string `json:"t"`
	Route  string `json:"r"`
}

// Answer answers a Void, in Parts. ReceiverIncarnation is the number that is answered, the Header's Incarnation the
// answerer's own; keys may have higher ones.
type Answer struct {
	Header
	To                  string `json:"to"`
	ReceiverIncarnation int64  `json:"to_incarnation"`
	// Known, if higher than the number asked about, is the one that the answerer already knows: the asker must take a
	// higher one.
	Known int64 `json:"known,omitempty"`
	// Blank: the answerer has no rights at all and knows of no key that has moved.
	Blank bool `json:"blank,omitempty"`
	// Relearning, if not 0, is the number that is answered, by a region that re-learns itself: it refuses lower ones and cannot say
	// more yet. ReceiverIncarnation is Nobody then, so that who does not know this field ignores the message. Missing are the
	// regions that have not answered the sender itself.
	Relearning int64    `json:"relearning,omitempty"`
	Missing    []string `json:"missing,omitempty"`
	// Agreed: the answerer has not renewed the region's lease for longer than it can last.
	Agreed bool `json:"agreed,omitempty"`
	// Keys of which the answerer keeps anything with the asker. An unlisted one means zeros.
	Keys []AnswerKey `json:"keys"`
}

// AnswerKey is every counter of one pair as the answerer keeps them. Lists are share, ride and loan, for what was received also
// what was refused of loans.
type AnswerKey struct {
	Tenant      string      `json:"t"`
	Route       string      `json:"r"`
	Incarnation int64       `json:"i"`
	Epoch       int64       `json:"e"`
	Base        limit.Share `json:"b"`
	Out         [3]int64    `json:"out"`
	In          [4]int64    `json:"in"`
	Acked       [4]int64    `json:"ack"`
	// Pending: the answerer re-learns this key itself and cannot say yet.
	Pending bool `json:"p,omitempty"`
	// Forgot is what a Pending answerer can say once it refuses the asker's former lives.
	Forgot *Forgot `json:"f,omitempty"`
}

// Forgot is what a region counts of a key without the asker, while both re-learn it: its share by those that have answered it,
// its floor, and who has not answered.
type Forgot struct {
	Account int64       `json:"acct"`
	Floor   limit.Share `json:"floor"`
	Missing []string    `json:"missing,omitempty"`
}

// Nobody is an incarnation that no region has.
const Nobody = 1

// maxRegions bounds a list of regions.
const maxRegions = 64

// SubjectVoid carries Void, SubjectAnswer Answer, to a region from another. to or from may be "*" to subscribe.
func SubjectVoid(to, from string) string { return prefix + "void." + to + "." + from }

// SubjectAnswer carries Answer to a region from another. to or from may be "*" to subscribe.
func SubjectAnswer(to, from string) string { return prefix + "answer." + to + "." + from }

func (m *Void) check() error {
	if m.Incarnation < 1 || m.Moved < 0 {
		return errors.New("no incarnation, or a negative number of keys")
	}
	return errors.Join(limit.ValidateName("to", m.To), checkList(m.Keys, func(k *KeyName) error { return checkKey(k.Tenant, k.Route) }))
}

func (m *Answer) check() error {
	if m.ReceiverIncarnation < 1 || m.Known < 0 || m.Relearning < 0 {
		return errors.New("no incarnation is answered")
	}
	if err := checkRegions(m.Missing); err != nil {
		return err
	}
	return errors.Join(limit.ValidateName("to", m.To), checkList(m.Keys, func(k *AnswerKey) error {
		if k.Incarnation < 1 {
			return errors.New("no incarnation")
		}
		if f := k.Forgot; f != nil {
			if f.Account < -maxRegions*int64(limit.Whole) || f.Account > maxRegions*int64(limit.Whole) {
				return errors.New("account is absurd")
			}
			if err := errors.Join(checkShares(f.Floor), checkRegions(f.Missing)); err != nil {
				return err
			}
		}
		return errors.Join(checkKey(k.Tenant, k.Route), checkShares(k.Base), checkCounters(k.Epoch),
			checkCounters(k.Out[:]...), checkCounters(k.In[:]...), checkCounters(k.Acked[:]...))
	}))
}

func (k KeyName) maxBytes() int { return fixedBytes + textBytes(k.Tenant) + textBytes(k.Route) }

// Eleven counters of up to 20 digits each come on top of the usual.
func (k AnswerKey) maxBytes() int {
	n := 2*fixedBytes + textBytes(k.Tenant) + textBytes(k.Route)
	if k.Forgot != nil {
		n += fixedBytes
		for _, r := range k.Forgot.Missing {
			n += textBytes(r) + 3
		}
	}
	return n
}

func checkRegions(names []string) error {
	if len(names) > maxRegions {
		return fmt.Errorf("%d regions, at most %d", len(names), maxRegions)
	}
	for _, r := range names {
		if err := limit.ValidateName("region", r); err != nil {
			return err
		}
	}
	return nil
}
