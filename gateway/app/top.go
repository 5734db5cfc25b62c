package app

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

const (
	topMost    = 1000
	topLongest = 10 * time.Second
)

// top serves GET /top?n=20&for=1s: the busiest keys of this instance, the most refused first.
func (g *gateway) top(w http.ResponseWriter, r *http.Request) {
	if !g.serving.Load() {
		http.Error(w, "not serving yet", http.StatusServiceUnavailable)
		return
	}
	n, watch := 20, time.Second
	q := r.URL.Query()
	var err error
	if v := q.Get("n"); v != "" {
		if n, err = strconv.Atoi(v); err != nil || n < 1 || n > topMost {
			http.Error(w, "n: a number from 1 to 1000 expected", http.StatusBadRequest)
			return
		}
	}
	if v := q.Get("for"); v != "" {
		if watch, err = time.ParseDuration(v); err != nil || watch <= 0 || watch > topLongest {
			http.Error(w, "for: a duration up to 10s expected", http.StatusBadRequest)
			return
		}
	}
	busy, err := g.table.Top(r.Context(), n, watch)
	if err != nil {
		return // the client has gone
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(busy) // as above
}
