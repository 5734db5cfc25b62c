package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Tenants, paths and user agents make no series: metrics are bounded by routes and outcomes (request-path 110).
func TestSeriesAreBounded(t *testing.T) {
	s := newSet(t)
	g := start(t, s.config+"\nidentity: {mode: header}\n")
	series := func() map[string]bool {
		resp, err := http.Get(g.Admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		names := map[string]bool{}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if name, _, ok := strings.Cut(lines.Text(), " "); ok && name != "#" {
				names[name] = true
			}
		}
		return names
	}
	methods := []string{"POST", "GET", "PUT", "BREW", "X" + fmt.Sprint(rand.Int())}
	call := func(n int) {
		for i := range n {
			path := "/orders"
			if i%4 == 0 {
				path = fmt.Sprintf("/random/%d", rand.Int())
			}
			req, err := http.NewRequestWithContext(context.Background(), methods[i%len(methods)], g.URL+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if i%len(methods) == 0 {
				req.Method = http.MethodPost
			}
			req.Header.Set("X-Api-Key", fmt.Sprintf("tenant-%d", rand.Int()))
			req.Header.Set("User-Agent", fmt.Sprint(rand.Int()))
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	call(200)
	before := series()
	eventually(t, 30*time.Second, "what is known of Redis is told", func() bool {
		before = series()
		return slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(s string) bool { return strings.HasPrefix(s, "partidor_redis_evicted_total") })
	})
	call(2000)
	for name := range series() {
		if !before[name] && !strings.HasPrefix(name, "go_") {
			t.Errorf("a new series after 2,000 more tenants, paths and agents: %s", name)
		}
	}
	if len(before) > 1000 {
		t.Errorf("%d series of one route", len(before))
	}
}
