package middleware

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

type brokenStore struct{ calls int }

func (s *brokenStore) Take(context.Context, []bucket.Limit) (limit.Decision, error) {
	s.calls++
	return limit.Decision{}, errors.New("no connection")
}

func build(t *testing.T, store bucket.Store, rule *limit.Rule, edit func(*Options)) http.Handler {
	t.Helper()
	o := Options{
		Store: store,
		Key: func(r *http.Request) (limit.Key, bool) {
			u := r.Header.Get("X-User")
			return limit.Key{Tenant: u, Route: "r"}, u != ""
		},
		Rule: func(limit.Key) *limit.Rule { return rule },
	}
	if edit != nil {
		edit(&o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "served") }))
}

func ask(h http.Handler, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The same handler over memory and over a real Redis.
func TestLimits(t *testing.T) {
	client, err := redisconn.New(redisconn.Options{Addrs: []string{testenv.StartRedis(t).Addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	inRedis := bucket.NewRedis(bucket.Options{Client: client})
	t.Cleanup(inRedis.Close)
	for name, store := range map[string]bucket.Store{"memory": bucket.NewMemory(nil), "redis": inRedis} {
		t.Run(name, func(t *testing.T) {
			h := build(t, store, &limit.Rule{Capacity: 3, Refill: 1, PeriodSeconds: 3600}, func(o *Options) { o.Deadline = time.Second })
			for i, want := range []int{200, 200, 200, 429, 429} {
				if w := ask(h, "ada"); w.Code != want || w.Header().Get("X-RateLimit-Limit") != "3" {
					t.Errorf("request %d: %d %v", i+1, w.Code, w.Header())
				}
			}
			w := ask(h, "ada")
			if w.Header().Get("Retry-After") == "" || w.Header().Get("Cache-Control") != "no-store" || !strings.Contains(w.Body.String(), "#quota-exceeded") {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
			if w := ask(h, "bob"); w.Code != 200 {
				t.Errorf("another user: %d", w.Code)
			}
		})
	}
}

// Modes, costs and callers without a key.
func TestWhoIsLimited(t *testing.T) {
	rule := func(m limit.Mode) *limit.Rule {
		return &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 3600, Mode: m}
	}
	cost := func(n int64) func(*Options) {
		return func(o *Options) { o.Cost = func(*http.Request) int64 { return n } }
	}
	for _, tt := range []struct {
		name    string
		user    string
		rule    *limit.Rule
		edit    func(*Options)
		second  int
		limited bool
	}{
		{"enforced", "ada", rule(limit.Enforce), nil, 429, true},
		{"no key", "", rule(limit.Enforce), nil, 200, false},
		{"no rule", "ada", nil, nil, 200, false},
		{"unlimited", "ada", rule(limit.Unlimited), nil, 200, false},
		{"shadow", "ada", rule(limit.Shadow), nil, 200, false},
		{"block", "ada", rule(limit.Block), nil, 403, false},
		{"free", "ada", rule(limit.Enforce), cost(0), 200, false},
		{"too large", "ada", rule(limit.Enforce), cost(2), 413, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := build(t, bucket.NewMemory(nil), tt.rule, tt.edit)
			ask(h, tt.user)
			w := ask(h, tt.user)
			if w.Code != tt.second || (w.Header().Get("RateLimit") != "") != tt.limited {
				t.Errorf("%d %v", w.Code, w.Header())
			}
		})
	}
}

// Without its store the rule's on_error decides, and the store is given a rest.
func TestStoreAway(t *testing.T) {
	for onError, want := range map[limit.OnError][2]int{
		limit.OnErrorLocal: {200, 429}, limit.OnErrorAllow: {200, 200}, limit.OnErrorDeny: {503, 503},
	} {
		store := &brokenStore{}
		h := build(t, store, &limit.Rule{Capacity: 5, Refill: 1, PeriodSeconds: 3600, OnError: onError}, nil)
		first, last := ask(h, "ada").Code, 0
		for range 100 {
			last = ask(h, "ada").Code
		}
		if first != want[0] || last != want[1] {
			t.Errorf("%s: %d, then %d; want %v", onError, first, last, want)
		}
		if store.calls > 30 {
			t.Errorf("%s: a broken store was asked %d times", onError, store.calls)
		}
	}
}

func TestNewDemandsItsParts(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("accepted")
	}
}
