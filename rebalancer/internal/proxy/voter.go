package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/wire"
)

// Voter is the control plane's vote on regions' leases (PROTOCOL R13). Every rebalancer hears what regions call; the one that
// leads answers, unless a leader has acted in the region's name under a higher number.
type Voter struct {
	conn     *nats.Conn
	instance string
	started  time.Time
	logger   *slog.Logger
	term     func() int64 // 0 while this process does not lead

	mu       sync.Mutex
	ear      *lease.Ear
	reign    int64 // the term that notes are of; only in it are renewals answered
	notes    map[string]ledger.RegionLease
	lives    map[string]int64 // the highest incarnation that a region has called by
	sequence uint64
}

// VoterOptions are all needed.
type VoterOptions struct {
	Conn     *nats.Conn
	Instance string
	Started  time.Time
	Logger   *slog.Logger
	// Term is the one in which this process leads, 0 while it does not.
	Term func() int64
	// Terms of the leases.
	Terms lease.Terms
}

// NewVoter has heard nobody yet.
func NewVoter(o VoterOptions) *Voter {
	return &Voter{
		conn: o.Conn, instance: o.Instance, started: o.Started, logger: o.Logger, term: o.Term,
		ear: lease.NewEar(lease.Clock(), o.Terms), notes: map[string]ledger.RegionLease{}, lives: map[string]int64{},
	}
}

// Run hears and answers until ctx ends.
func (v *Voter) Run(ctx context.Context) error {
	sub, err := v.conn.Subscribe(wire.SubjectRenew("*"), v.hear)
	if err != nil {
		return fmt.Errorf("vote on leases: %w", err)
	}
	<-ctx.Done()
	_ = sub.Unsubscribe() // the connection may be gone already
	return nil
}

func (v *Voter) hear(m *nats.Msg) {
	var r wire.Renewal
	if err := wire.Decode(m.Data, &r); err != nil || m.Subject != wire.SubjectRenew(r.Region) {
		v.logger.Debug("renewal refused", "subject", m.Subject, "error", err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ear.Hear(lease.Clock(), lease.Call{
		Renewal:     lease.Renewal{Region: r.Region, Stamp: time.Duration(r.Stamp)},
		Incarnation: r.Incarnation, Lease: time.Duration(r.LeaseMillis) * time.Millisecond, Fences: r.Fences,
	}, lease.Life{Instance: r.Instance, Started: r.Started})
	v.lives[r.Region] = max(v.lives[r.Region], r.Incarnation)
	n := v.notes[r.Region]
	n.Floor = max(n.Floor, r.Floor)
	v.notes[r.Region] = n
	if term := v.term(); r.LeaseMillis == 0 || term == 0 || term != v.reign {
		return
	}
	v.sequence++
	g := wire.Grant{
		Header: wire.Header{Region: wire.SenderControl, Instance: v.instance, Sequence: v.sequence, Started: v.started.UnixMilli()},
		To:     r.Region, ToInstance: r.Instance, ToStarted: r.Started, ReceiverIncarnation: r.Incarnation, Stamp: r.Stamp,
	}
	if n.Incarnation > r.Incarnation {
		g.Known = n.Incarnation
	}
	data, err := wire.Encode(&g)
	if err == nil {
		err = v.conn.Publish(wire.SubjectGrant(r.Region, wire.SenderControl), data)
	}
	if err != nil {
		v.logger.Debug("renewal not answered", "region", r.Region, "error", err)
	}
}

// begin answers renewals in a new term, knowing what the ledger does.
func (v *Voter) begin(term int64, noted map[string]ledger.RegionLease) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for region, n := range noted {
		n.Floor = max(n.Floor, v.notes[region].Floor)
		v.notes[region] = n
	}
	v.reign = term
}

// took makes lower incarnations of the region void here.
func (v *Voter) took(region string, number int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.notes[region]
	n.Incarnation = max(n.Incarnation, number)
	v.notes[region] = n
}

// silent tells whether the region has surely lost its lease as far as was heard here, and keeps to its floor then.
func (v *Voter) silent(region string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	fences, known := v.ear.Fences(region)
	return (known && fences || !known && v.notes[region].Fences) && v.ear.Silent(lease.Clock(), region)
}

// life is the highest incarnation by which the region has called.
func (v *Voter) life(region string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lives[region]
}

// floor is the largest that the region has ever called its own, of any key.
func (v *Voter) floor(region string) limit.Share {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.notes[region].Floor
}

// news are what the ledger does not know yet of regions that were heard.
func (v *Voter) news(noted map[string]ledger.RegionLease) map[string]ledger.RegionLease {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string]ledger.RegionLease{}
	for region, n := range maps.All(v.notes) {
		if fences, known := v.ear.Fences(region); known {
			n.Fences = fences
		}
		if old := noted[region]; n.Fences != old.Fences || n.Floor > old.Floor {
			out[region] = n
		}
	}
	return out
}
