package wire

import (
	"errors"
	"fmt"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// SenderControl is the control plane's name where a message says which region sent it: it is none.
const SenderControl = "control"

// MaxLease bounds how long an answer may be said to hold: a voter waits for as long.
const MaxLease = 10 * time.Minute

// Renewal is what every instance of a region says to all voters, once a second: renew our region's lease. The Header's
// Incarnation is the one that the lease is of.
type Renewal struct {
	Header
	// Stamp is when it was sent, on the instance's own clock; nobody else's business. It comes back in the Grant.
	Stamp int64 `json:"stamp"`
	// LeaseMillis is how long the instance takes an answer to hold; 0 asks for none: no leases run, as far as it knows.
	LeaseMillis int64 `json:"lease_ms,omitempty"`
	// Fences: the instance keeps to its floor when the lease is over.
	Fences bool `json:"fences,omitempty"`
	// Floor is the largest share that the region uses of any key when the lease is over.
	Floor limit.Share `json:"floor,omitempty"`
}

// Grant answers a Renewal. ReceiverIncarnation is the incarnation that is granted, or refused.
type Grant struct {
	Header
	To string `json:"to"`
	// ToInstance and ToStarted are the one life of the one instance that is answered.
	ToInstance          string `json:"to_instance"`
	ToStarted           int64  `json:"to_started"`
	ReceiverIncarnation int64  `json:"to_incarnation"`
	Stamp               int64  `json:"stamp"`
	// Known, if higher than ReceiverIncarnation, refuses: the voter knows of a later life of the region.
	Known int64 `json:"known,omitempty"`
}

// SubjectRenew carries Renewal from a region to every voter. from may be "*" to subscribe.
func SubjectRenew(from string) string { return prefix + "renew." + from }

// SubjectGrant carries Grant to a region from a voter: a region or SenderControl. to or from may be "*" to subscribe.
func SubjectGrant(to, from string) string { return prefix + "grant." + to + "." + from }

func (m *Renewal) check() error {
	if m.Incarnation < 1 || m.Stamp < 0 {
		return errors.New("no incarnation, or a negative stamp")
	}
	if m.LeaseMillis < 0 || m.LeaseMillis > MaxLease.Milliseconds() {
		return fmt.Errorf("lease of %d ms, must be from 0 to %v", m.LeaseMillis, MaxLease)
	}
	return checkShares(m.Floor)
}

func (m *Grant) check() error {
	if m.ReceiverIncarnation < 1 || m.Stamp < 0 || m.Known < 0 || m.ToStarted < 0 {
		return errors.New("no incarnation is answered, or something is negative")
	}
	return errors.Join(limit.ValidateName("to", m.To), limit.ValidateName("to_instance", m.ToInstance))
}
