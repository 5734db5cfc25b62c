package ledger

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// leases is what both ledgers offer.
type leases interface {
	RegionLeases(ctx context.Context) (map[string]RegionLease, error)
	NoteLease(ctx context.Context, term int64, region string, fences bool, floor limit.Share) error
	TakeIncarnation(ctx context.Context, term int64, region string, above int64) (int64, error)
}

func testRegionLeases(t *testing.T, l leases, term int64) {
	ctx := t.Context()
	soon := time.Now().Add(time.Hour).UnixMilli()
	var mu sync.Mutex
	taken := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			n, err := l.TakeIncarnation(ctx, term, "eu", soon)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || n <= soon || n%2 == 0 || taken[n] {
				t.Errorf("took %d (%v): must be odd, above %d and nobody else's", n, err, soon)
			}
			taken[n] = true
		})
	}
	wg.Wait()
	for _, floor := range []limit.Share{140_000, 35_000} {
		if err := l.NoteLease(ctx, term, "eu", floor == 35_000, floor); err != nil {
			t.Fatal(err)
		}
	}
	all, err := l.RegionLeases(ctx)
	if err != nil || len(all) != 1 || !taken[all["eu"].Incarnation] || !all["eu"].Fences || all["eu"].Floor != 140_000 {
		t.Errorf("kept %+v, %v: want the largest floor", all, err)
	}
	if _, err := l.TakeIncarnation(ctx, term-1, "eu", 0); !errors.Is(err, ErrFenced) {
		t.Errorf("a number in a term that is over: %v", err)
	}
	if err := l.NoteLease(ctx, term-1, "eu", true, 0); !errors.Is(err, ErrFenced) {
		t.Errorf("noted in a term that is over: %v", err)
	}
}

func TestRegionLeasesInPostgres(t *testing.T) {
	pg, _ := opened(t)
	testRegionLeases(t, pg, lead(t, pg, "x"))
}

func TestRegionLeasesInMemory(t *testing.T) {
	testRegionLeases(t, &Memory{clock: time.Now}, 7)
}
