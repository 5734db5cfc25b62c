package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/shared/limit"
)

// shelf counts what is kept, and fails when told to.
type shelf struct {
	minutes, rolled, expired, aged int
	keep                           time.Duration
	fail                           atomic.Bool
}

func (s *shelf) RecordDemand(_ context.Context, _ int64, points []ledger.DemandPoint) error {
	if s.fail.Load() {
		return errors.New("away")
	}
	s.minutes++
	return nil
}

func (s *shelf) RollUpDemand(context.Context, int64, time.Duration) error { s.rolled++; return nil }
func (s *shelf) EndExpired(context.Context, int64) (int, error)           { s.expired++; return 1, nil }

func (s *shelf) Age(_ context.Context, _ int64, keep time.Duration) (int64, error) {
	s.aged++
	s.keep = keep
	return 1, nil
}

func (s *shelf) Keys([]limit.Key) []board.Key { return nil }

func (s *shelf) Picture(context.Context) (*board.Picture, error) { return &board.Picture{}, nil }

func TestUpkeepGoesOnAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		s.fail.Store(true)
		k := &Keeper{Options{Ledger: s, Board: s, Parameters: parameter.Default, Logger: slog.New(slog.DiscardHandler)}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute+time.Second)
		defer cancel()
		time.AfterFunc(10*time.Minute+time.Second, func() { s.fail.Store(false) })
		k.Lead(ctx, 1)
		if s.minutes != 20 || s.rolled != 3 || s.aged != 3 || s.expired != 720 {
			t.Errorf("kept %d minutes, rolled up %d times, aged %d times, ended rules %d times", s.minutes, s.rolled, s.aged, s.expired)
		}
	})
}

// The parameter history_days counts as it is when history is aged.
func TestKeepsWhatHistoryDaysSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, days := &shelf{}, 90
		k := &Keeper{Options{Ledger: s, Board: s, Logger: slog.New(slog.DiscardHandler),
			Parameters: func() parameter.Values { v := parameter.Default(); v.HistoryDays = days; return v }}}
		for _, days = range []int{90, 7} {
			ctx, cancel := context.WithTimeout(t.Context(), ageEvery+time.Second)
			k.Lead(ctx, 1)
			cancel()
			if want := time.Duration(days) * 24 * time.Hour; s.keep != want {
				t.Errorf("kept %s, want %s", s.keep, want)
			}
		}
	})
}

func TestPointsAreBounded(t *testing.T) {
	p := &board.Picture{Regions: make([]board.Region, 2)}
	p.Regions[0].Name, p.Regions[1].Name = "eu", "us"
	for i := range 1000 {
		p.Keys = append(p.Keys, limit.Key{Tenant: fmt.Sprintf("t%04d", i), Route: "r"})
		p.Rates = append(p.Rates, collect.Rate{Offered: float32(i)}, collect.Rate{})
	}
	kept := &minute{}
	k := &Keeper{Options{Ledger: kept, Board: &hall{picture: p}, Parameters: parameter.Default, Logger: slog.New(slog.DiscardHandler)}}
	if err := k.record(t.Context(), 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	points := kept.points
	if len(points) != 2*recordKeys+2 {
		t.Fatalf("%d points, want %d keys and the rest in two regions", len(points), recordKeys)
	}
	if points[0].Tenant != "t0999" || points[0].Offered != 999 {
		t.Errorf("the first is %+v, want the key that offers most", points[0])
	}
	rest := points[len(points)-2]
	if want := float32(799 * 800 / 2); rest.Tenant != "*" || rest.Region != "eu" || rest.Offered != want {
		t.Errorf("the rest is %+v, want %v in eu", rest, want)
	}
}

// minute keeps the points it is given.
type minute struct {
	shelf
	points []ledger.DemandPoint
}

func (m *minute) RecordDemand(_ context.Context, _ int64, points []ledger.DemandPoint) error {
	m.points = points
	return nil
}

// hall has one picture, and draws keys by its rates.
type hall struct{ picture *board.Picture }

func (h *hall) Picture(context.Context) (*board.Picture, error) { return h.picture, nil }

func (h *hall) Keys(names []limit.Key) []board.Key {
	keys := make([]board.Key, len(names))
	for i, name := range names {
		keys[i] = board.Key{Tenant: name.Tenant, Route: name.Route}
		at := h.picture.Search(name.Tenant, name.Route)
		for j, r := range h.picture.Regions {
			keys[i].Regions = append(keys[i].Regions, board.Share{Region: r.Name, Offered: float64(h.picture.Rates[at*len(h.picture.Regions)+j].Offered)})
		}
	}
	return keys
}
