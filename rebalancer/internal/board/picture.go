package board

import (
	"maps"
	"sort"
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
	// Keys in the order of tenant and route.
	Keys []Key
	// Pressed are indexes into Keys of those that are refused anything, most refused first.
	Pressed []int
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
}

// Find the key in the picture.
func (p *Picture) Find(tenant, route string) (*Key, bool) {
	i := p.Search(tenant, route)
	if i < len(p.Keys) && p.Keys[i].Tenant == tenant && p.Keys[i].Route == route {
		return &p.Keys[i], true
	}
	return nil, false
}

// Search is the index of the first key at or after (tenant, route).
func (p *Picture) Search(tenant, route string) int {
	return sort.Search(len(p.Keys), func(i int) bool {
		k := &p.Keys[i]
		return k.Tenant > tenant || k.Tenant == tenant && k.Route >= route
	})
}

// Draw makes the picture. demand has its loads in the order of m.Regions.
func Draw(m *ledger.Mirror, demand []plan.Demand, heard []collect.RegionStatus, now time.Time) *Picture {
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
	d := drawing{Picture: p, mirror: m, now: now, seen: make(map[limit.Key]struct{}, len(demand))}
	p.Keys = make([]Key, 0, max(len(demand), len(m.Splits)))
	for i := range demand {
		d.add(demand[i].Key, demand[i].Loads)
	}
	none := make([]plan.Load, len(m.Regions))
	for key := range m.Splits {
		if _, ok := d.seen[key]; !ok {
			d.add(key, none)
		}
	}
	d.sort()
	return p
}

// drawKey is one key as it would begin: nobody has used it lately.
func drawKey(m *ledger.Mirror, name limit.Key, now time.Time) Key {
	d := drawing{Picture: &Picture{Regions: make([]Region, len(m.Regions))}, mirror: m, now: now, seen: map[limit.Key]struct{}{}}
	d.add(name, make([]plan.Load, len(m.Regions)))
	return d.Keys[0]
}

type drawing struct {
	*Picture
	mirror *ledger.Mirror
	now    time.Time
	seen   map[limit.Key]struct{}
	rules  map[*limit.Rule]*rulesfile.Rule // many keys, few rules
}

func (d *drawing) add(key limit.Key, loads []plan.Load) {
	d.seen[key] = struct{}{}
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
		d.Regions[i].Offered += s.Offered
		d.Regions[i].Refused += s.Refused
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
	d.Keys = append(d.Keys, k)
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

func (d *drawing) sort() {
	sort.Slice(d.Keys, func(i, j int) bool {
		a, b := &d.Keys[i], &d.Keys[j]
		return a.Tenant < b.Tenant || a.Tenant == b.Tenant && a.Route < b.Route
	})
	for i := range d.Keys {
		if d.Keys[i].Refused > 0 {
			d.Pressed = append(d.Pressed, i)
		}
	}
	sort.SliceStable(d.Pressed, func(i, j int) bool { return d.Keys[d.Pressed[i]].Refused > d.Keys[d.Pressed[j]].Refused })
}
