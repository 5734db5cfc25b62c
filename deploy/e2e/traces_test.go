package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/testenv/otlpenv"
)

// tracedRequest: a request that comes in traced is one trace from the client to the upstream: the request below the client's span,
// the decision below the request, Redis below the decision, the attempt below the request, and the upstream is told the attempt's.
func tracedRequest(t *testing.T, d *deployment) {
	const trace, client = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	resp := d.regions["eu"].gateways[0].order(t, "shop-a", "traceparent", "00-"+trace+"-"+client+"-01")
	saw := strings.Split(resp.Header.Get("Upstream-Saw-Traceparent"), "-")
	if len(saw) != 4 || saw[1] != trace || saw[3] != "01" {
		t.Fatalf("the upstream saw traceparent %q", saw)
	}
	id, _ := hex.DecodeString(trace)
	var spans []otlpenv.Span
	d.awaitSpans(t, func(all []otlpenv.Span) bool {
		spans = inTrace(all, id)
		return len(spans) >= 4
	})
	byName := map[string]otlpenv.Span{}
	for _, s := range spans {
		byName[s.Name] = s
		if s.Resource["service.name"] != "partidor-gateway" || s.Resource["partidor.region"] != "eu" {
			t.Errorf("%s is of %v", s.Name, s.Resource)
		}
	}
	request, decision, call, attempt := byName["POST /orders"], byName["decision"], byName["EVALSHA take"], byName["POST"]
	for _, link := range []struct {
		name         string
		span         otlpenv.Span
		kind         string
		parent, want string
	}{
		{"request", request, "SPAN_KIND_SERVER", "the client's", client},
		{"decision", decision, "SPAN_KIND_INTERNAL", "the request's", spanID(request)},
		{"call to Redis", call, "SPAN_KIND_CLIENT", "the decision's", spanID(decision)},
		{"attempt", attempt, "SPAN_KIND_CLIENT", "the request's", spanID(request)},
	} {
		if link.span.Span == nil {
			t.Fatalf("no span of the %s; there are %v", link.name, slices.Sorted(maps.Keys(byName)))
		}
		if got := hex.EncodeToString(link.span.ParentSpanId); got != link.want || link.span.Kind.String() != link.kind {
			t.Errorf("the %s is below %s, want %s %s; kind %s", link.name, got, link.parent, link.want, link.span.Kind)
		}
	}
	if saw[2] != spanID(attempt) {
		t.Errorf("the upstream is below %s, want the attempt %s", saw[2], spanID(attempt))
	}
	said := map[string]bool{}
	for _, a := range decision.Attributes {
		said[a.GetKey()] = true
	}
	for _, name := range []string{"tenant", "route", "outcome", "source", "degraded", "revision", "share", "remaining", "cost"} {
		if !said["partidor."+name] {
			t.Errorf("the decision says no partidor.%s", name)
		}
	}
}

func spanID(s otlpenv.Span) string { return hex.EncodeToString(s.GetSpanId()) }

// tracedCycle: the rebalancer's collect, plan, commit and advise, what the donor gives in one region and the receiver applies in the
// other are one trace, joined over NATS: every span leads back to the cycle.
func tracedCycle(t *testing.T, d *deployment) {
	d.awaitSpans(t, func(spans []otlpenv.Span) bool {
		return slices.ContainsFunc(spans, func(s otlpenv.Span) bool {
			if s.Name != "cycle" {
				return false
			}
			where := map[string]string{}
			parents := map[string]string{}
			for _, o := range spans {
				if bytes.Equal(o.TraceId, s.TraceId) {
					where[o.Name] = o.Resource["service.name"] + " " + o.Resource["partidor.region"]
					parents[spanID(o)] = hex.EncodeToString(o.ParentSpanId)
				}
			}
			for _, name := range []string{"collect", "plan", "commit", "advise"} {
				if where[name] != "partidor-rebalancer " {
					return false
				}
			}
			for id := range parents {
				for ; id != spanID(s); id = parents[id] {
					if id == "" {
						return false // its parent has not arrived
					}
				}
			}
			give, apply := where["transfer.give"], where["transfer.apply"]
			return strings.HasPrefix(give, "partidor-gateway ") && strings.HasPrefix(apply, "partidor-gateway ") && give != apply
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
