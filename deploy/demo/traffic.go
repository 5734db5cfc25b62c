package main

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/deploy/internal/admission"
	"partidor.dev/partidor/deploy/internal/load"
	"partidor.dev/partidor/shared/limit"
)

// counts of one tenant in one region.
type counts struct {
	offered, admitted, refused, failed atomic.Int64
}

// account is what the demo knows about one tenant.
type account struct {
	tenant  tenant
	checker *admission.Checker
	// regional counts stand in the order of regions.
	regional []*counts
	ideal    *admission.Ideal

	mu         sync.Mutex
	firstError string
}

// traffic is every tenant's requests and what became of them.
type traffic struct {
	start    time.Time
	swing    time.Duration
	accounts []*account
}

// startTraffic sends every tenant's requests to the gateways of both regions until ctx ends. The group waits for the last
// answers.
func startTraffic(ctx context.Context, w *world, tenants []tenant, o options) (*traffic, *sync.WaitGroup) {
	sent := new(sync.WaitGroup)
	t := &traffic{start: time.Now(), swing: o.swing}
	client := load.Client(2 * time.Second) // below admission.Horizon
	for i, who := range tenants {
		capacity, rate := float64(who.capacity), float64(who.refill)
		a := &account{tenant: who, checker: admission.NewChecker(capacity, rate), ideal: admission.NewIdeal(capacity, rate)}
		t.accounts = append(t.accounts, a)
		for j, r := range w.regions {
			n := &counts{}
			a.regional = append(a.regional, n)
			sent.Go(func() {
				load.Run(ctx, client, t.start, load.Source{
					Request: requests(who, r.gateways),
					Rate:    func(elapsed time.Duration) float64 { return who.rate(r.name, elapsed, o.swing) },
					Seed:    o.seed*1000 + uint64(i*len(regions)+j),
				}, func(res load.Result) { a.note(n, res) })
			})
		}
	}
	return t, sent
}

// requests go to a region's gateways in turn, as from a load balancer.
func requests(who tenant, gateways []string) func(context.Context) (*http.Request, error) {
	var turn atomic.Uint64
	return func(ctx context.Context) (*http.Request, error) {
		url := gateways[turn.Add(1)%uint64(len(gateways))] + "/orders"
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
		if err == nil {
			req.Header.Set("X-Api-Key", "key-"+who.name)
		}
		return req, err
	}
}

func (a *account) note(n *counts, r load.Result) {
	n.offered.Add(1)
	if !r.Shed {
		a.ideal.Asked(1, r.Received, r.Status == http.StatusTooManyRequests)
	}
	switch {
	case r.Status == http.StatusOK:
		n.admitted.Add(1)
		a.checker.Admitted(1, r.Sent, r.Received)
	case r.Status == http.StatusTooManyRequests:
		n.refused.Add(1)
	default:
		n.failed.Add(1)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.firstError == "" {
			a.firstError = describe(r)
		}
	}
}

func describe(r load.Result) string {
	switch {
	case r.Shed:
		return "the demo itself could not keep up"
	case r.Err != nil:
		return r.Err.Error()
	}
	return http.StatusText(r.Status)
}

// whole is the sum over regions.
func (a *account) whole() (offered, admitted, refused, failed int64) {
	for _, n := range a.regional {
		offered += n.offered.Load()
		admitted += n.admitted.Load()
		refused += n.refused.Load()
		failed += n.failed.Load()
	}
	return offered, admitted, refused, failed
}

// inForce is the sum of all regions' shares. They are read one after the other: a sum above the whole counts where it is there each
// time, as no share is under way for so long.
func (a *account) inForce(w *world) (sum limit.Share) {
	for range 20 {
		if sum = a.shares(w, time.Now()).Sum(); sum <= limit.Whole {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return sum
}

// shares of the tenant's key, by region.
func (a *account) shares(w *world, now time.Time) limit.Split {
	split := limit.Split{}
	for _, r := range w.regions {
		split[r.name] = r.bucket(a.tenant, now).share
	}
	return split
}
