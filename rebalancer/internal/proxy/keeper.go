package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// Ledger knows which regions are dead and which keys have moved.
type Ledger interface {
	Refresh(ctx context.Context, m *ledger.Mirror) error
	Commit(ctx context.Context, d ledger.Decision) error
	RegionLeases(ctx context.Context) (map[string]ledger.RegionLease, error)
	NoteLease(ctx context.Context, term int64, region string, fences bool, floor limit.Share) error
	TakeIncarnation(ctx context.Context, term int64, region string, above int64) (int64, error)
}

// Recoverer acts as regions that are away.
type Recoverer interface {
	Recover(ctx context.Context, c Claim) (map[limit.Key][]limit.Share, error)
}

// Keeper recovers regions that operators declare dead, and where leases run those that have lost theirs, while its process
// leads.
type Keeper struct {
	Ledger Ledger
	Proxy  Recoverer
	Voter  *Voter
	// Control is the failure domain of the control plane, empty where none is declared.
	Control func() string
	// Floor is the part of its base share that a region keeps where it states no floor itself.
	Floor func() float64
	// Forget drops what is remembered of a region's shares.
	Forget func(region string)
	Holder string
	Logger *slog.Logger
}

const (
	// lookEvery is the time between two looks for dead regions, patience how long one attempt may take.
	lookEvery = 5 * time.Second
	patience  = time.Minute
)

// Lead works until ctx ends. What a former leader has recovered is found to be recovered already.
func (k *Keeper) Lead(ctx context.Context, term int64) {
	done := map[string]bool{}
	var m ledger.Mirror
	tick, watch := time.NewTicker(lookEvery), time.NewTicker(watchEvery)
	defer tick.Stop()
	defer watch.Stop()
	s := &silence{keeper: k, term: term, done: map[string]bool{}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
			if err := s.watch(ctx, &m); err != nil && ctx.Err() == nil {
				s.complain(ctx, err)
			}
			continue
		case <-tick.C:
		}
		if err := k.look(ctx, term, &m, done); err != nil && ctx.Err() == nil {
			k.Logger.WarnContext(ctx, "dead region not recovered, it is tried again", "error", err)
		}
	}
}

func (k *Keeper) look(ctx context.Context, term int64, m *ledger.Mirror, done map[string]bool) error {
	call, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := k.Ledger.Refresh(call, m); err != nil {
		return err
	}
	var dead, alive []string
	for _, r := range m.Regions {
		if r.State == ledger.RegionDead {
			dead = append(dead, r.Name)
		} else {
			alive = append(alive, r.Name)
			delete(done, r.Name) // it may die again
		}
	}
	if len(dead) == 0 || done[dead[0]] && len(dead) == 1 {
		return nil
	}
	if len(dead) > 1 {
		// The amount between two regions that are away is known to neither (PROTOCOL R12, R14).
		return fmt.Errorf("regions %s are dead at once: nothing can be minted until all but one are restored", strings.Join(dead, ", "))
	}
	region := dead[0]
	keys := k.keys(m, region, alive)
	number, err := k.Ledger.TakeIncarnation(call, term, region, k.Voter.life(region))
	if err != nil {
		return err
	}
	k.Voter.took(region, number)
	minted, err := k.Proxy.Recover(call, Claim{Region: region, Peers: alive, Keys: keys, Number: number})
	if len(minted) > 0 {
		if err := k.commit(call, term, m, region, "was declared dead", alive, minted); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	done[region] = true
	k.Forget(region)
	k.Logger.WarnContext(ctx, "a dead region's share has been minted anew for the others", "region", region, "keys", len(minted))
	return nil
}

// keys of the region that are known to have moved: the base split is changed otherwise.
func (k *Keeper) keys(m *ledger.Mirror, region string, peers []string) (list []Key) {
	floor := limit.Share(0)
	for _, r := range m.Regions {
		if r.Name == region {
			// A region that is cut off may know of a change of the floors later, or not at all.
			floor = max(r.Floor, k.Voter.floor(region))
		}
	}
	for name, s := range m.Splits {
		key := Key{Key: name, Weights: make([]float64, len(peers))}
		moved := false
		for _, r := range s.Regions {
			if r.Base == nil {
				continue
			}
			moved = true
			if r.Region == region {
				key.Base = *r.Base
			} else if i := slices.Index(peers, r.Region); i >= 0 {
				key.Weights[i] = float64(r.Target)
			}
		}
		if !moved {
			continue
		}
		key.Floor = min(key.Base, max(floor, limit.Share(math.Ceil(float64(key.Base)*k.Floor()))))
		list = append(list, key)
	}
	slices.SortFunc(list, func(a, b Key) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return list
}

// commit notes the new targets, so that the next plan begins from them.
func (k *Keeper) commit(ctx context.Context, term int64, m *ledger.Mirror, region, why string, peers []string, minted map[limit.Key][]limit.Share) error {
	d := ledger.Decision{Term: term, Holder: k.Holder, Regions: append([]string{region}, peers...)}
	for name, parts := range minted {
		sum, weights := limit.Share(0), make([]float64, len(parts))
		for i, p := range parts {
			sum += p
			weights[i] = float64(p)
		}
		if sum == 0 {
			continue
		}
		target := m.Splits[name]
		before := make([]limit.Share, len(d.Regions))
		for i, r := range d.Regions {
			before[i] = target.Target()[r]
		}
		after := slices.Clone(before)
		given := min(sum, before[0])
		after[0] -= given
		for i, p := range limit.ApportionOf(given, weights) {
			after[i+1] += p
		}
		d.Changes = append(d.Changes, ledger.Change{Key: name, Before: before, After: after,
			Reason: "region " + region + " " + why + ": its share above the floor was minted anew"})
	}
	return k.Ledger.Commit(ctx, d)
}
