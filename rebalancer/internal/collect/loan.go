package collect

import (
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// Loan is whole tokens that a region has got from another, less what it gave back for want of room. Loans of one lender that follow
// one another closely are one, as of the last.
type Loan struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	Tokens int64     `json:"tokens"`
}

const (
	// oneLoan is how close loans of one lender are one to people; maxLoans bounds how many a key has in a region.
	oneLoan  = 10 * time.Second
	maxLoans = 16
)

type loan struct {
	at     time.Duration
	from   string
	tokens int64
}

// lender is what a region last said that it has got of a key from another: cumulative, within one life of both and one epoch.
type lender struct {
	life [3]int64
	got  int64
}

// Ack takes in what a region has got from another of some keys. What was got before the first word of it is not known to be new.
func (t *Table) Ack(now time.Duration, a *wire.Ack) {
	r, known := t.regions[a.Region]
	if _, there := t.regions[a.To]; !known || !there {
		return
	}
	for i := range a.Rows {
		row := &a.Rows[i]
		k := t.keys[limit.Key{Tenant: row.Tenant, Route: row.Route}]
		if k == nil {
			continue
		}
		if d := t.detail(now, keyRegion{k, r}); d != nil {
			d.got(now, a.To, lender{[3]int64{a.Incarnation, a.ReceiverIncarnation, row.Epoch}, row.Loan - row.Refused})
		}
	}
}

func (d *detail) got(now time.Duration, from string, said lender) {
	before, known := d.lenders[from]
	if known && before.life == said.life && said.got <= before.got {
		return // nothing new, or an older word that comes late
	}
	if d.lenders == nil {
		d.lenders = map[string]lender{}
	}
	d.lenders[from] = said
	if !known || before.life != said.life {
		return
	}
	d.used = now
	tokens := said.got - before.got
	for i := len(d.loans) - 1; i >= 0 && now-d.loans[i].at <= oneLoan; i-- {
		if d.loans[i].from == from {
			tokens += d.loans[i].tokens
			d.loans = slices.Delete(d.loans, i, i+1)
			break
		}
	}
	if len(d.loans) == maxLoans {
		d.loans = slices.Delete(d.loans, 0, 1)
	}
	d.loans = append(d.loans, loan{now, from, tokens})
}
