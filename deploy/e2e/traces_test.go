package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/testenv/otlpenv"
)

// tracedRequest: a request that comes in traced is followed through decision and Redis to the upstream.
func tracedRequest(t *testing.T, d *deployment) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	resp := d.regions["eu"].gateways[0].order(t, "shop-a", "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	if saw := resp.Header.Get("Upstream-Saw-Traceparent"); len(saw) < 35 || saw[3:35] != trace {
		t.Errorf("the upstream saw traceparent %q", saw)
	}
	id, _ := hex.DecodeString(trace)
	d.awaitSpans(t, func(spans []otlpenv.Span) bool {
		return len(inTrace(spans, id)) >= 4
	})
}

// tracedCycle: the rebalancer's collect, plan, commit and advise and the gateways' transfer are one trace, joined over NATS.
func tracedCycle(t *testing.T, d *deployment) {
	d.awaitSpans(t, func(spans []otlpenv.Span) bool {
		return slices.ContainsFunc(spans, func(s otlpenv.Span) bool {
			if s.Name != "cycle" {
				return false
			}
			services := map[string]bool{}
			names := map[string]bool{}
			for _, o := range inTrace(spans, s.TraceId) {
				services[o.Resource["service.name"]] = true
				name, _, _ := strings.Cut(o.Name, ".") // transfer.give, transfer.apply
				names[name] = true
			}
			for _, name := range []string{"collect", "plan", "commit", "advise", "transfer"} {
				if !names[name] {
					return false
				}
			}
			return services["partidor-rebalancer"] && services["partidor-gateway"]
		})
	})
}

// inTrace are the spans of one trace, and those linked to it.
func inTrace(spans []otlpenv.Span, id []byte) (found []otlpenv.Span) {
	for _, s := range spans {
		linked := bytes.Equal(s.TraceId, id)
		for _, l := range s.Links {
			linked = linked || bytes.Equal(l.TraceId, id)
		}
		if linked {
			found = append(found, s)
		}
	}
	return found
}

func (d *deployment) awaitSpans(t *testing.T, found func([]otlpenv.Span) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	if d.otlp.Await(ctx, found) {
		return
	}
	seen := map[string]int{}
	d.otlp.Await(ctx, func(spans []otlpenv.Span) bool {
		for _, s := range spans {
			seen[s.Resource["service.name"]+": "+s.Name]++
		}
		return true
	})
	t.Fatalf("the spans do not join; seen: %v", seen)
}
