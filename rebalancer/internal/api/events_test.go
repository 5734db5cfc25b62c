package api

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
)

func TestEventsShowPictures(t *testing.T) {
	s := newSite(t)
	// This process follows: what the ledger says counts all the same.
	if code := s.do(t, "PUT", "/v1/parameters/paused", `{"value": true}`, nil); code != 200 {
		t.Fatal(code)
	}
	s.collector.demand = []plan.Demand{
		{Key: limit.Key{Tenant: "a", Route: "r"}, Loads: []plan.Load{{Known: true, Offered: 10}, {}}},
		{Key: limit.Key{Tenant: "b", Route: "r"}, Loads: []plan.Load{{Known: true, Offered: 10, Refused: 8}, {}}}}
	for query, want := range map[string]func(*Live) bool{
		"":                  func(l *Live) bool { return len(l.Keys) == 2 && l.Keys[0].Tenant == "b" && len(l.Regions) == 2 },
		"?q=a":              func(l *Live) bool { return len(l.Keys) == 1 && l.Keys[0].Tenant == "a" },
		"?tenant=a&route=r": func(l *Live) bool { return l.Key != nil && l.Key.Tenant == "a" && l.Keys == nil },
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/events"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+viewerToken)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		var l Live
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &l); err != nil {
					t.Error(err)
				}
				break
			}
		}
		_ = res.Body.Close()
		if !l.Paused || l.Shadow || !want(&l) {
			t.Errorf("%q shows %+v", query, l)
		}
	}
}

func TestSessionOfTheConsole(t *testing.T) {
	s := newSite(t)
	if code := s.as(t, "", "POST", "/v1/session", `{"token": "wrong"}`, nil); code != http.StatusUnauthorized {
		t.Errorf("a wrong token signs in: %d", code)
	}
	res, err := http.Post(s.URL+"/v1/session", "application/json", strings.NewReader(`{"token": "`+viewerToken+`"}`)) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	cookies := res.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("cookies %+v", cookies)
	}
	if code := s.as(t, "", "GET", "/v1/rules", "", nil, "Cookie", cookies[0].String()); code != http.StatusOK {
		t.Errorf("with the cookie: %d", code)
	}
	if code := s.as(t, "", "DELETE", "/v1/rules/a/r", "", nil, "Cookie", cookies[0].String()); code != http.StatusForbidden {
		t.Errorf("a viewer's cookie changes things: %d", code)
	}
}
