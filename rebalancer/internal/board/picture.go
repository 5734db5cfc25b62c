package board

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// Picture is everything at one moment. It is shared between readers and must not be changed.
type Picture struct {
	At       time.Time
	Revision limit.Revision
	// Parameters that the ledger sets, as they stand there, whoever leads.
	Parameters map[string]ledger.Parameter
	Regions    []Region
	// Keys in the order of tenant and route: those in use, and those whose shares have moved. What is to be seen of one is drawn
	// when it is looked at.
	Keys []limit.Key
	// Rates of key i in region j, at i·(number of regions) + j.
	Rates []collect.Rate
}

// Region is one region and what is heard of it.
type Region struct {
	ledger.Region
	// Known is false while the region is silent; Silence is the time since it was last heard, −1 s if never.
	Known     bool    `json:"known"`
	Silence   float64 `json:"silence_seconds"`
	Instances int     `json:"instances"`
	// Gateways as they last said themselves.
	Gateways []collect.Gateway `json:"gateways,omitempty"`
	// Reached is the revision that all of them serve by; Behind tells that it is not yet the ledger's.
	Reached limit.Revision `json:"reached,omitzero"`
	Behind  bool           `json:"behind,omitempty"`
	// Offered and Refused are tokens per second over all keys.
	Offered float64 `json:"offered"`
	Refused float64 `json:"refused"`
}

// Key is one key. Rates are in tokens per second.
type Key struct {
	Tenant string `json:"tenant"`
	Route  string `json:"route"`
	// Rule in force for the key, and whom it is written for: its tenant and route tell where it came from.
	Rule *rulesfile.Rule `json:"rule,omitempty"`
	// RuleRevision is the rule's.
	RuleRevision limit.Revision `json:"rule_revision,omitzero"`
	Regions      []Share        `json:"regions"`
	Offered      float64        `json:"offered"`
	Refused      float64        `json:"refused"`
	// Moved tells that the key no longer follows the base split.
	Moved bool `json:"moved"`
	// Reason, By, DecidedAt, Term and Cycle are of the last decision on its split.
	Reason    string    `json:"reason,omitempty"`
	By        string    `json:"by,omitempty"`
	DecidedAt time.Time `json:"decided_at,omitzero"`
	Term      int64     `json:"term,omitempty"`
	Cycle     int64     `json:"cycle,omitempty"`
}

// Share is one region's part of a key.
type Share struct {
	Region string `json:"region"`
	// Share in force as far as is known: reported by the region, else last observed, else the base share.
	Share  limit.Share `json:"share"`
	Target limit.Share `json:"target"`
	// Reported is false where Share is not from a live report.
	Reported bool `json:"reported"`
	// Base noted when the key first moved, absent for one that never has.
	Base    *limit.Share `json:"base,omitempty"`
	Pin     *limit.Share `json:"pin,omitempty"`
	PinEnds time.Time    `json:"pin_expires_at,omitzero"`
	Offered float64      `json:"offered"`
	Refused float64      `json:"refused"`
	// The rest is there where one key is asked for. Tokens last seen in the bucket, absent where none were.
	Tokens *float64 `json:"tokens,omitempty"`
	// Sources counts the decisions of the last minute or two by who made them; absent where all came from the store.
	Sources map[string]uint64 `json:"sources,omitempty"`
	// Refusal is the last one of the last quarter of an hour; Moves of the share in that time, the newest last.
	Refusal *Refusal            `json:"last_refusal,omitempty"`
	Moves   []collect.ShareMove `json:"moves,omitempty"`
	// Loans that the region has got from others in that time.
	Loans []collect.Loan `json:"loans,omitempty"`
}

// Search is the index of the first key at or after (tenant, route).
func (p *Picture) Search(tenant, route string) int {
	i, _ := slices.BinarySearchFunc(p.Keys, limit.Key{Tenant: tenant, Route: route}, collect.CompareKeys)
	return i
}

// Rate of a key in all regions together, in tokens per second.
func (p *Picture) Rate(key int) (offered, refused float64) {
	n := len(p.Regions)
	for _, r := range p.Rates[key*n : (key+1)*n] {
		offered += float64(r.Offered)
		refused += float64(r.Refused)
	}
	return offered, refused
}

// MostRefused are the indexes of at most n wanted keys: the most refused first, then those that offer most.
func (p *Picture) MostRefused(n int, want func(key int) bool) []int {
	return p.foremost(n, want, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(b.offered, a.offered), cmp.Compare(a.key, b.key))
	})
}

// MostOffered are the indexes of at most n wanted keys, those that offer most first.
func (p *Picture) MostOffered(n int, want func(key int) bool) []int {
	return p.foremost(n, want, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.offered, a.offered), cmp.Compare(a.key, b.key))
	})
}

type candidate struct {
	key              int
	offered, refused float64
}

// foremost keeps the best 2n at most, so that hundreds of thousands of keys are never sorted.
func (p *Picture) foremost(n int, want func(key int) bool, compare func(a, b candidate) int) []int {
	if n <= 0 {
		return nil
	}
	best := make([]candidate, 0, 2*n)
	cut := func() {
		slices.SortFunc(best, compare)
		best = best[:min(n, len(best))]
	}
	var worst *candidate // of the n best, once there are so many
	for i := range p.Keys {
		offered, refused := p.Rate(i)
		c := candidate{i, offered, refused}
		if worst != nil && compare(c, *worst) > 0 || !want(i) {
			continue
		}
		if best = append(best, c); len(best) == 2*n {
			cut()
			worst = new(best[n-1])
		}
	}
	cut()
	out := make([]int, len(best))
	for i, c := range best {
		out[i] = c.key
	}
	return out
}

// newPicture has everything but the drawing of keys. The survey has its rates in the order of m.Regions; others are the keys whose
// shares have moved, in order.
func newPicture(m *ledger.Mirror, survey collect.Survey, others []limit.Key, heard []collect.RegionStatus, now time.Time) *Picture {
	p := &Picture{At: now, Revision: m.Revision, Regions: make([]Region, len(m.Regions)), Parameters: maps.Clone(m.Parameters)}
	for i, r := range m.Regions {
		p.Regions[i] = Region{Region: r, Silence: -1}
		for _, h := range heard {
			if h.Name == r.Name {
				p.Regions[i].Known, p.Regions[i].Instances, p.Regions[i].Gateways = h.Known, h.Instances, h.Gateways
				p.Regions[i].Reached, p.Regions[i].Behind = h.Rules, m.Revision.Newer(h.Rules)
				p.Regions[i].Silence = max(-1, h.Silence.Seconds())
			}
		}
	}
	p.fill(survey, others)
	for i := range p.Rates {
		r := &p.Regions[i%len(p.Regions)]
		r.Offered += float64(p.Rates[i].Offered)
		r.Refused += float64(p.Rates[i].Refused)
	}
	return p
}

// fill joins the keys in use with the others.
func (p *Picture) fill(survey collect.Survey, others []limit.Key) {
	missing := make([]limit.Key, 0, len(others))
	at := 0
	for _, key := range others {
		for at < len(survey.Keys) && collect.CompareKeys(survey.Keys[at], key) < 0 {
			at++
		}
		if at == len(survey.Keys) || survey.Keys[at] != key {
			missing = append(missing, key)
		}
	}
	p.Keys, p.Rates = survey.Keys, survey.Rates
	if len(missing) == 0 {
		return
	}
	n := len(p.Regions)
	p.Keys = collect.Merge(survey.Keys, missing, collect.CompareKeys)
	p.Rates = make([]collect.Rate, len(p.Keys)*n)
	at = 0
	for i, key := range p.Keys {
		if at < len(survey.Keys) && survey.Keys[at] == key {
			copy(p.Rates[i*n:(i+1)*n], survey.Rates[at*n:])
			at++
		}
	}
}

// drawing is some keys on their way into view.
type drawing struct {
	mirror *ledger.Mirror
	now    time.Time
	rules  map[*limit.Rule]*rulesfile.Rule // many keys, few rules
}

// draw one key, with its loads in the order of the mirror's regions.
func (d *drawing) draw(key limit.Key, loads []plan.Load) Key {
	k := Key{Tenant: key.Tenant, Route: key.Route, Regions: make([]Share, len(d.mirror.Regions))}
	match := d.mirror.Rules.Lookup(key, d.now)
	if match.Rule != nil {
		k.Rule, k.RuleRevision = d.rule(match), match.Rule.Revision
	}
	split, ok := d.mirror.Splits[key]
	if ok {
		k.Reason, k.By, k.DecidedAt, k.Term, k.Cycle = split.Reason, split.By, split.At, split.Term, split.Cycle
	}
	for i, r := range d.mirror.Regions {
		s := &k.Regions[i]
		s.Region, s.Share, s.Target = r.Name, r.Published, r.Published
		s.Offered, s.Refused = loads[i].Offered, loads[i].Refused
		k.Offered += s.Offered
		k.Refused += s.Refused
		for j := range split.Regions {
			if of := &split.Regions[j]; of.Region == r.Name {
				s.fill(of, d.now)
			}
		}
		if loads[i].Known && loads[i].Share > 0 {
			s.Share, s.Reported = loads[i].Share, true
		}
		k.Moved = k.Moved || s.Base != nil
	}
	return k
}

func (s *Share) fill(of *ledger.RegionShare, now time.Time) {
	s.Target, s.Base = of.Target, of.Base
	if of.Observed != nil {
		s.Share = *of.Observed
	}
	if of.Pinned(now) {
		s.Pin, s.PinEnds = of.Pin, of.PinExpires
	}
}

func (d *drawing) rule(m ledger.Match) *rulesfile.Rule {
	if r, ok := d.rules[m.Rule]; ok {
		return r
	}
	if d.rules == nil {
		d.rules = make(map[*limit.Rule]*rulesfile.Rule)
	}
	r := rulesfile.Of(m.Tenant, m.Route, m.Rule)
	d.rules[m.Rule] = &r
	return &r
}
