package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/rights/lease"
)

// watchEvery is the time between two looks at who has fallen silent.
const watchEvery = time.Second

// silence is what one reign does about regions that have fallen silent (PROTOCOL R14).
type silence struct {
	keeper *Keeper
	term   int64
	// noted is what the ledger knows of leases, nil before it was read. done are regions recovered and not heard since.
	noted map[string]ledger.RegionLease
	done  map[string]bool
	said  string
}

// watch begins to answer renewals, keeps what is news of them, and recovers a region that has lost its lease.
func (s *silence) watch(ctx context.Context, m *ledger.Mirror) (err error) {
	call, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, l := s.keeper.Voter, s.keeper.Ledger
	if s.noted == nil {
		if s.noted, err = l.RegionLeases(call); err != nil {
			return err
		}
		v.begin(s.term, s.noted)
	}
	for region, n := range v.news(s.noted) {
		if err := l.NoteLease(call, s.term, region, n.Fences, n.Floor); err != nil {
			return err
		}
		s.noted[region] = n
	}
	if region, _, err := s.lost(m); m.Rules != nil && region == "" && err == nil {
		return nil
	}
	if err := l.Refresh(call, m); err != nil {
		return err
	}
	region, peers, err := s.lost(m)
	if region == "" || err != nil {
		return err
	}
	number, err := l.TakeIncarnation(call, s.term, region, v.life(region))
	if err != nil {
		return err
	}
	v.took(region, number)
	s.keeper.Logger.WarnContext(ctx, "a region has lost its lease: the others are asked to agree that its share be minted anew", "region", region, "incarnation", number)
	sure := func(ctx context.Context) error {
		if err := l.Refresh(ctx, m); err != nil {
			return err
		}
		if again, now, err := s.lost(m); err != nil || again != region || !slices.Equal(now, peers) {
			return errors.Join(ErrAlive, err)
		}
		return nil
	}
	minted, err := s.keeper.Proxy.Recover(call, Claim{Region: region, Peers: peers, Keys: s.keeper.keys(m, region, peers), Number: number, Sure: sure})
	if len(minted) > 0 {
		if err := s.keeper.commit(call, s.term, m, region, "has lost its lease", peers, minted); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	s.done[region], s.said = true, ""
	s.keeper.Forget(region)
	s.keeper.Logger.WarnContext(ctx, "the share of a region without a lease has been minted anew for the others", "region", region, "keys", len(minted))
	return nil
}

// lost is the one region that has lost its lease and is not recovered yet, and all others. With a second one away nothing can
// be minted: what lies between the two is known to neither.
func (s *silence) lost(m *ledger.Mirror) (region string, peers []string, err error) {
	votes := lease.Votes{Domain: map[string]string{}}
	var away []string
	for _, r := range m.Regions {
		votes.Domain[r.Name] = r.Domain
		quiet := s.keeper.Voter.silent(r.Name)
		if !quiet {
			delete(s.done, r.Name)
		}
		if quiet || r.State == ledger.RegionDead {
			away = append(away, r.Name)
		} else {
			peers = append(peers, r.Name)
		}
	}
	if d := s.keeper.Control(); d != "" {
		votes.Domain[lease.Control] = d
	}
	switch {
	case !votes.Run() || len(away) == 0 || len(away) == 1 && s.done[away[0]]:
		return "", nil, nil
	case len(away) > 1:
		return "", nil, fmt.Errorf("regions %s are away at once: nothing can be minted before all but one are back", strings.Join(away, ", "))
	}
	for _, r := range m.Regions {
		if r.Name == away[0] && r.State == ledger.RegionDead {
			return "", nil, nil // the operator's word is followed elsewhere
		}
	}
	return away[0], peers, nil
}

// complain logs what goes wrong once, until it goes wrong in another way.
func (s *silence) complain(ctx context.Context, err error) {
	if s.said != err.Error() {
		s.said = err.Error()
		s.keeper.Logger.WarnContext(ctx, "leases", "error", err)
	}
}
