package api

import (
	"net/http"
	"strings"

	"partidor.dev/partidor/rebalancer/internal/board"
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
	want := wanted(q)
	switch q.text("order") {
	case "":
	case "pressure":
		return pressed(p, want, size), nil
	default:
		return nil, badRequest("order", "must be pressure or left out")
	}
	from, err := q.after(2)
	if err != nil {
		return nil, err
	}
	at := max(keyPosition{from[0], from[1]}.next(p), 0)
	if t := q.text("tenant"); t != "" {
		at = max(at, p.Search(t, q.text("route")))
	}
	items := make([]board.Key, 0, min(size+1, len(p.Keys)-min(at, len(p.Keys))))
	for ; at < len(p.Keys) && len(items) <= size; at++ {
		k := &p.Keys[at]
		if t := q.text("tenant"); t != "" && k.Tenant != t {
			break // the keys of a tenant stand together
		}
		if want(k) {
			items = append(items, *k)
		}
	}
	return pageOf(items, size, func(k board.Key) []string { return []string{k.Tenant, k.Route} }), nil
}

type keyPosition struct{ tenant, route string }

// next is the index of the first key behind the position.
func (k keyPosition) next(p *board.Picture) int {
	if k.tenant == "" {
		return 0
	}
	i := p.Search(k.tenant, k.route)
	if i < len(p.Keys) && p.Keys[i].Tenant == k.tenant && p.Keys[i].Route == k.route {
		i++
	}
	return i
}

func wanted(q *query) func(*board.Key) bool {
	tenant, route, part := q.text("tenant"), q.text("route"), q.text("q")
	return func(k *board.Key) bool {
		return (tenant == "" || k.Tenant == tenant) && (route == "" || k.Route == route) &&
			(part == "" || strings.Contains(k.Tenant, part) || strings.Contains(k.Route, part))
	}
}

func pressed(p *board.Picture, want func(*board.Key) bool, size int) Page[board.Key] {
	items := []board.Key{}
	for _, i := range p.Pressed {
		if len(items) == size {
			break
		}
		if want(&p.Keys[i]) {
			items = append(items, p.Keys[i])
		}
	}
	return Page[board.Key]{Items: items}
}
