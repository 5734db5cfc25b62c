package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

// large is a ledger and a collector of 100,000 tenants × 3 routes in two regions.
type large struct {
	heard
	mirror ledger.Mirror
}

func (l *large) Refresh(_ context.Context, m *ledger.Mirror) error {
	*m = l.mirror
	return nil
}

// BenchmarkScale is what one look costs with 100,000 tenants × 3 routes, the drawing of the picture apart: as partidorctl and the
// console ask.
func BenchmarkScale(b *testing.B) {
	l := &large{mirror: ledger.Mirror{Rules: ledger.NewRules(), Splits: map[limit.Key]ledger.Split{}, Parameters: map[string]ledger.Parameter{},
		Regions: []ledger.Region{{Name: "eu", Base: 700_000, Published: 700_000, State: ledger.RegionActive}, {Name: "us", Base: 300_000, Published: 300_000, State: ledger.RegionActive}}}}
	rule := &limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	for i := range 100_000 {
		for j := range 3 {
			key := limit.Key{Tenant: fmt.Sprintf("tenant-%06d", i), Route: fmt.Sprintf("route-%d", j)}
			l.mirror.Rules.Set(key.Tenant, key.Route, rule)
			l.demand = append(l.demand, plan.Demand{Key: key, Loads: []plan.Load{{Known: true, Offered: float64(i % 50), Refused: float64(i % 7)}, {Known: true}}})
		}
	}
	shown := board.New(l, l)
	s := &Server{Board: &still{Board: shown}, Rebalancer: idle{}, Leadership: idle{}, Readiness: func() []string { return nil },
		Metrics: http.NotFoundHandler(), Console: http.NotFoundHandler(), Base: parameter.Default(), Access: Access{Anonymous: Viewer}}
	if _, err := s.Board.Picture(b.Context()); err != nil {
		b.Fatal(err)
	}
	handler := s.Handler()
	for _, look := range []struct{ name, path string }{
		{"a page in the middle", "/v1/splits?tenant=tenant-050000"},
		{"a search", "/v1/splits?q=99999"},
		{"the most refused", "/v1/splits?order=pressure"},
	} {
		b.Run(look.name, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+look.path, nil)
				if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
	b.Run("a picture for the console", func(b *testing.B) {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/v1/events", nil)
		for b.Loop() {
			if data, err := s.live(r, &query{}); err != nil || len(data) == 0 {
				b.Fatal(err)
			}
		}
	})
}

// still draws once.
type still struct {
	*board.Board
	picture *board.Picture
}

func (s *still) Picture(ctx context.Context) (p *board.Picture, err error) {
	if s.picture == nil {
		s.picture, err = s.Board.Picture(ctx)
	}
	return s.picture, err
}
