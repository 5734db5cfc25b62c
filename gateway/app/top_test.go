package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Who is busy is asked for on the admin port; only tenants that the configuration names have series.
func TestBusyTenants(t *testing.T) {
	s := newSet(t)
	for _, name := range []string{"shop-a", "shop-b"} {
		s.shop(t, name)
		s.rule(t, name, 1, 1, 3600)
	}
	g := start(t, s.config+"\ntelemetry: {tenants: [shop-a]}\n")
	answer := make(chan []struct {
		Tenant   string
		Admitted float64 `json:"admitted_per_second"`
		Refused  float64 `json:"refused_per_second"`
	}, 1)
	go func() {
		resp, err := http.Get(g.Admin + "/top?n=1&for=1s")
		if err != nil {
			t.Error(err)
			close(answer)
			return
		}
		defer resp.Body.Close()
		var body []struct {
			Tenant   string
			Admitted float64 `json:"admitted_per_second"`
			Refused  float64 `json:"refused_per_second"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answer <- body
	}()
	for done := false; !done; {
		g.post("shop-a")
		g.post("shop-b")
		g.post("shop-b")
		select {
		case busy := <-answer:
			done = true
			if len(busy) != 1 || busy[0].Tenant != "shop-b" || busy[0].Refused <= 0 {
				t.Errorf("busiest %+v, want shop-b, refused", busy)
			}
		default:
		}
	}
	if n := g.metric("partidor_tenant_tokens_total", `partidor_outcome="admitted"`, `partidor_route="create-order"`, `partidor_tenant="shop-a"`); n != 1 {
		t.Errorf("shop-a's series says %v admitted, want 1", n)
	}
	resp, err := http.Get(g.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	if _, err := io.Copy(&text, resp.Body); err != nil || strings.Contains(text.String(), "shop-b") {
		t.Errorf("shop-b has a series: %v", err)
	}
	for _, bad := range []string{"n=0", "n=x", "for=1h", "for=-1s"} {
		if resp, err := http.Get(g.Admin + "/top?" + bad); err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: accepted", bad)
		}
	}
}
