package wire

import (
	"errors"
	"slices"

	"partidor.dev/partidor/shared/limit"
)

// Consume asks the home region of a tiny limit for tokens, by request and reply. It is answered by Consumed, once.
type Consume struct {
	Header
	To     string `json:"to"`
	Tenant string `json:"t"`
	Route  string `json:"r"`
	Cost   int64  `json:"cost"`
	// BudgetMillis is how long the home may keep the request for a token to come.
	BudgetMillis int64 `json:"budget_ms,omitempty"`
	// Epoch and Number are the revision of the rule that the asker goes by.
	Epoch  int64 `json:"epoch,omitempty"`
	Number int64 `json:"rev,omitempty"`
}

// Return gives back what a home admitted for a request that another of its limits then refused. It goes to every instance of
// the home, names the reply that admitted, and is honoured once by the instance that sent it. If it is lost, so are the tokens.
type Return struct {
	Header
	To         string `json:"to"`
	ToInstance string `json:"to_instance"`
	ToStarted  int64  `json:"to_started"`
	Reply      uint64 `json:"reply"`
}

func (m *Return) check() error {
	return errors.Join(limit.ValidateName("to", m.To), limit.ValidateName("to_instance", m.ToInstance))
}

// What a home answers. ConsumedMoved: its rights are elsewhere. ConsumedUnable: its Redis did not decide.
const (
	ConsumedAdmitted = "admitted"
	ConsumedRefused  = "refused"
	ConsumedTooLarge = "too_large"
	ConsumedMoved    = "moved"
	ConsumedUnable   = "unable"
)

// Consumed is the home's decision.
type Consumed struct {
	Header
	Outcome string `json:"outcome"`
	// Remaining whole tokens at the home; RetryMicros until the next request of this cost fits, ResetMicros until full.
	Remaining   int64 `json:"remaining,omitempty"`
	RetryMicros int64 `json:"retry_us,omitempty"`
	ResetMicros int64 `json:"reset_us,omitempty"`
}

func (m *Consume) check() error {
	if m.Cost < 0 || m.Cost > limit.MaxTokens || m.BudgetMillis < 0 || m.Epoch < 0 || m.Number < 0 {
		return errors.New("negative or absurd cost, budget or revision")
	}
	return errors.Join(limit.ValidateName("to", m.To), checkKey(m.Tenant, m.Route))
}

var outcomes = []string{ConsumedAdmitted, ConsumedRefused, ConsumedTooLarge, ConsumedMoved, ConsumedUnable}

func (m *Consumed) check() error {
	if m.Remaining < 0 || m.RetryMicros < 0 || m.ResetMicros < 0 {
		return errors.New("negative number")
	}
	if !slices.Contains(outcomes, m.Outcome) {
		return errors.New("unknown outcome")
	}
	return nil
}
