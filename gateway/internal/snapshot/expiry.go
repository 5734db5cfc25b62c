package snapshot

import (
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// expiry is a temporary rule's end to come.
type expiry struct {
	at            time.Time
	tenant, route string
	rule          *limit.Rule
}

// NextExpiry is when the next temporary rule ends; ok is false for none.
func (s *Snapshot) NextExpiry() (at time.Time, ok bool) {
	if len(s.expiring) == 0 {
		return time.Time{}, false
	}
	return s.expiring[0].at, true
}

// expire notes e among the ends to come.
func (b *Builder) expire(e expiry) {
	if !b.unsorted {
		b.next.expiring, b.unsorted = slices.Clone(b.next.expiring), true
	}
	b.next.expiring = append(b.next.expiring, e)
}

// sortExpiries puts the ends to come in order.
func (b *Builder) sortExpiries() {
	if b.unsorted {
		slices.SortFunc(b.next.expiring, func(x, y expiry) int { return x.at.Compare(y.at) })
		b.unsorted = false
	}
}

// Expire ends every temporary rule whose time has come: its keys go to the next match, under the revision of the rule that
// ended. Gateways whose clocks differ disagree for as long as their clocks do; no bucket is refilled by that.
func (b *Builder) Expire(now time.Time) {
	b.sortExpiries()
	n := 0
	for n < len(b.next.expiring) && !now.Before(b.next.expiring[n].at) {
		n++
	}
	for _, e := range b.next.expiring[:n] {
		r := b.own(e.tenant).at(b.route(e.route))
		if r.rule() == e.rule {
			r.end()
			b.next.counts.Rules--
		}
	}
	b.next.expiring = b.next.expiring[n:]
}
