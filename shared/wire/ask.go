package wire

import (
	"errors"
	"math"

	"partidor.dev/partidor/shared/limit"
)

// Ask is what a region would like of another, many keys at once. An ask stands until its life is over or a later one
// replaces it; loss and repetition only cost time.
type Ask struct {
	Header
	To   string   `json:"to"`
	Keys []AskKey `json:"keys"`
}

// AskKey is an ask for one key. One that asks for nothing only tells Spare.
type AskKey struct {
	Tenant string `json:"t"`
	Route  string `json:"r"`
	// Need is tokens now, Flow tokens per second for as long as the ask stands, Rate tokens per second of lasting share, Fill
	// tokens of those that would overflow at the donor.
	Need float64 `json:"need,omitempty"`
	Flow float64 `json:"flow,omitempty"`
	Rate float64 `json:"rate,omitempty"`
	Fill float64 `json:"fill,omitempty"`
	// Urgent tells that the sender is refusing.
	Urgent bool `json:"u,omitempty"`
	// LifeMillis is how long the ask stands.
	LifeMillis int64 `json:"life_ms,omitempty"`
	// Spare is tokens the sender could lend now.
	Spare float64 `json:"k,omitempty"`
}

// SubjectHot carries Usage of keys near their limit, many times a second, between the instances of a region.
func SubjectHot(region string) string { return prefix + "hot." + region }

func (m *Ask) check() error {
	return errors.Join(limit.ValidateName("to", m.To), checkList(m.Keys, func(k *AskKey) error {
		if k.LifeMillis < 0 {
			return errors.New("negative life")
		}
		return errors.Join(checkKey(k.Tenant, k.Route), checkAmounts(k.Need, k.Flow, k.Rate, k.Fill, k.Spare))
	}))
}

func checkAmounts(amounts ...float64) error {
	for _, x := range amounts {
		if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			return errors.New("amount is negative or no number")
		}
	}
	return nil
}

func (k AskKey) maxBytes() int { return fixedBytes + textBytes(k.Tenant) + textBytes(k.Route) }
