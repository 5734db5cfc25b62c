package api

import (
	"net/http"
	"strings"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/shared/limit"
)

// splits lists keys with their shares: one exact key, all routes of a tenant, those whose names hold q, or all, in the order
// of names; or, with order=pressure, those that are refused most.
func (s *Server) splits(r *http.Request) (any, error) {
	q, err := queryOf(r, "tenant", "route", "q", "order", "size", "page")
	if err != nil {
		return nil, err
	}
	size, err := q.size()
	if err != nil {
		return nil, err
	}
	p, err := s.picture(r)
	if err != nil {
		return nil, err
	}
	want := wanted(p, q)
	switch q.text("order") {
	case "":
	case "pressure":
		refused := func(key int) bool {
			_, refused := p.Rate(key)
			return refused > 0 && want(key)
		}
		return Page[board.Key]{Items: s.drawn(p, p.MostRefused(size, refused))}, nil
	default:
		return nil, badRequest("order", "must be pressure or left out")
	}
	from, err := q.after(2)
	if err != nil {
		return nil, err
	}
	at := behind(p, from)
	if t := q.text("tenant"); t != "" {
		at = max(at, p.Search(t, q.text("route")))
	}
	found := make([]int, 0, size+1)
	for ; at < len(p.Keys) && len(found) <= size; at++ {
		if t := q.text("tenant"); t != "" && p.Keys[at].Tenant != t {
			break // the keys of a tenant stand together
		}
		if want(at) {
			found = append(found, at)
		}
	}
	return pageOf(s.drawn(p, found), size, func(k board.Key) []string { return []string{k.Tenant, k.Route} }), nil
}

// drawn are the keys of the picture at the given places.
func (s *Server) drawn(p *board.Picture, places []int) []board.Key {
	names := make([]limit.Key, len(places))
	for i, at := range places {
		names[i] = p.Keys[at]
	}
	return s.Board.Keys(names)
}

// behind is the place of the first key after (tenant, route), of the first of all where there is none.
func behind(p *board.Picture, from []string) int {
	if from[0] == "" {
		return 0
	}
	at := p.Search(from[0], from[1])
	if at < len(p.Keys) && p.Keys[at] == (limit.Key{Tenant: from[0], Route: from[1]}) {
		at++
	}
	return at
}

// wanted tells which keys of the picture a query asks for.
func wanted(p *board.Picture, q *query) func(key int) bool {
	tenant, route, part := q.text("tenant"), q.text("route"), q.text("q")
	return func(key int) bool {
		k := &p.Keys[key]
		return (tenant == "" || k.Tenant == tenant) && (route == "" || k.Route == route) &&
			(part == "" || strings.Contains(k.Tenant, part) || strings.Contains(k.Route, part))
	}
}
