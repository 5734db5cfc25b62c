package api

import (
	"net/http"
	"strconv"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// demand is what has been recorded of one key: minutes of the last hours, or hours of the last days.
func (s *Server) demand(r *http.Request) (any, error) {
	q, err := queryOf(r, "hours")
	if err != nil {
		return nil, err
	}
	key := limit.Key{Tenant: r.PathValue("tenant"), Route: r.PathValue("route")}
	if key != (limit.Key{Tenant: limit.Wildcard, Route: limit.Wildcard}) { // the sum of the rest
		if key, err = keyOf(r); err != nil {
			return nil, err
		}
	}
	hours := 6
	if h := q.text("hours"); h != "" {
		const most = 3650 * 24
		if hours, err = strconv.Atoi(h); err != nil || hours < 1 || hours > most {
			return nil, badRequest("hours", "must be from 1 to 87600")
		}
	}
	step := ledger.DemandMinute
	if hours > 24 {
		step = ledger.DemandHour
	}
	points, err := s.Ledger.Demand(r.Context(), key, time.Now().Add(-time.Duration(hours)*time.Hour), step)
	if err != nil {
		return nil, err
	}
	if points == nil {
		points = []ledger.DemandPoint{}
	}
	return Page[ledger.DemandPoint]{Items: points}, nil
}
