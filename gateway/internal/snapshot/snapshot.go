package snapshot

import (
	"encoding/binary"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/lease"
)

// Region is one region of the deployment as the ledger or the rules file declares it.
type Region struct {
	Name string
	// Base is the region's part of every key that has never moved, Floor what it always keeps. While a change of the base
	// split is under way the bases add up to less than limit.Whole.
	Base, Floor limit.Share
	// Earlier are the base shares before this one, oldest first, as far as is known.
	Earlier []Earlier `json:",omitempty"`
	// Domain is the failure domain the region counts for in votes.
	Domain string
}

// APIKey is what a credential stands for. Its secret is never held, only its SHA-256.
type APIKey struct {
	Tenant  string
	Enabled bool
	// ExpiresAt ends the key; zero means never.
	ExpiresAt time.Time
	Revision  limit.Revision
}

type apiKey struct {
	hash [32]byte
	APIKey
}

// Snapshot is everything a gateway decides by, at one moment. It is immutable and safe for any number of readers.
type Snapshot struct {
	region      string
	base, floor limit.Share
	regions     []Region
	regionsAt   limit.Revision
	// past is what changes of the base split replaced, where any of it can make share late.
	past []past
	// changing: a change of the base split is under way.
	changing bool
	control  string
	// slow: the fast loop is switched off.
	slow bool
	// homes: tiny limits have a home region; home is where they are before they are first moved.
	homes       bool
	home        string
	defaultRule *limit.Rule
	routes      *routes
	scopes      table[scope]
	everybody   *scope
	keys        table[apiKey]
	expiring    []expiry
	revision    limit.Revision
	stale       bool
	shadow      bool
	counts      Counts
}

// Counts is how much a snapshot holds.
type Counts struct {
	Rules, Tenants, APIKeys, Moved int
}

// Empty is what a gateway of region starts with: no rules, no keys, no regions. It is not fit to serve.
func Empty(region string) *Snapshot {
	def := limit.DefaultRule
	return &Snapshot{
		region:      region,
		defaultRule: &def,
		routes:      newRoutes(),
		scopes:      newTable[scope](),
		everybody:   &scope{name: limit.Wildcard},
		keys:        newTable[apiKey](),
	}
}

// Region is the name of the gateway's own region.
func (s *Snapshot) Region() string { return s.region }

// Regions is every region of the deployment in name order; not to be changed.
func (s *Snapshot) Regions() []Region { return s.regions }

// Changing tells whether a change of the base split is under way: what it takes from regions is taken, what it brings is not there
// yet.
func (s *Snapshot) Changing() bool { return s.changing }

// RegionsRevision is when the regions were last changed.
func (s *Snapshot) RegionsRevision() limit.Revision { return s.regionsAt }

// Votes is who votes on leases: every region, and the control plane where its failure domain is declared.
func (s *Snapshot) Votes() lease.Votes {
	v := lease.Votes{Domain: make(map[string]string, len(s.regions)+1)}
	for i := range s.regions {
		v.Domain[s.regions[i].Name] = s.regions[i].Domain
	}
	if s.control != "" {
		v.Domain[lease.Control] = s.control
	}
	return v
}

// Control is the failure domain of the control plane, empty where none is declared: then it has no vote.
func (s *Snapshot) Control() string { return s.control }

// FastLoop tells whether regions may lend and move share between themselves.
func (s *Snapshot) FastLoop() bool { return !s.slow }

// Base is the own region's base share, in force for keys that have never moved.
func (s *Snapshot) Base() limit.Share { return s.base }

// Floor is the share the own region always keeps.
func (s *Snapshot) Floor() limit.Share { return s.floor }

// Default is the rule of keys that no rule matches.
func (s *Snapshot) Default() *limit.Rule { return s.defaultRule }

// Revision is the newest thing the snapshot knows of.
func (s *Snapshot) Revision() limit.Revision { return s.revision }

// Stale tells that the snapshot was read from disk and that its source has not been reached since.
func (s *Snapshot) Stale() bool { return s.stale }

// Shadow is the kill switch: while it is on, refusals are counted but not enforced.
func (s *Snapshot) Shadow() bool { return s.shadow }

// Counts is how much the snapshot holds.
func (s *Snapshot) Counts() Counts { return s.counts }

// Tenant is whom the credential with this SHA-256 belongs to. ok is false for unknown, disabled and expired ones.
func (s *Snapshot) Tenant(hash [32]byte, now time.Time) (id string, ok bool) {
	k := s.apiKey(hash)
	if k == nil || !k.Enabled || (!k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)) {
		return "", false
	}
	return k.Tenant, true
}

func (s *Snapshot) apiKey(hash [32]byte) *apiKey { return findKey(&s.keys, hash) }

func findKey(t *table[apiKey], hash [32]byte) *apiKey {
	h := keyHash(hash)
	for p, i := t.probe(h); p.slots[i].entry != nil; i++ {
		if s := &p.slots[i]; s.hash == h && s.entry.hash == hash {
			return s.entry
		}
	}
	return nil
}

// keyHash is part of what is already a cryptographic hash.
func keyHash(hash [32]byte) uint64 { return binary.LittleEndian.Uint64(hash[:8]) }

func findScope(t *table[scope], name string) *scope {
	h := hashOf(name)
	for p, i := t.probe(h); p.slots[i].entry != nil; i++ {
		if s := &p.slots[i]; s.hash == h && s.entry.name == name {
			return s.entry
		}
	}
	return nil
}
