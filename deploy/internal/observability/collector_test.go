package observability

import (
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
)

// collector is what the test reads of a collector's configuration.
type collector struct {
	Receivers, Exporters, Extensions map[string]any
	Processors                       map[string]struct {
		Policies []policy
	}
	Service struct {
		Extensions []string
		Pipelines  map[string]struct{ Receivers, Processors, Exporters []string }
	}
}

type policy struct {
	Name, Type      string
	StringAttribute struct {
		Key    string
		Values []string
	} `yaml:"string_attribute"`
	BooleanAttribute struct {
		Key   string
		Value bool
	} `yaml:"boolean_attribute"`
}

// The collector's pipelines use what is declared and only that, limit memory first and batch last, and the sampling goes by
// attributes and values that our spans have. What the components make of their settings a real collector says: `make otel-check`.
func TestCollectorFitsTheSpans(t *testing.T) {
	var c collector
	if err := yaml.Unmarshal([]byte(read(t, "deploy/otel/collector.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for name, p := range c.Service.Pipelines {
		if n := len(p.Processors); n < 2 || p.Processors[0] != "memory_limiter" || p.Processors[n-1] != "batch" {
			t.Errorf("%s: processors %v", name, p.Processors)
		}
		for _, part := range slices.Concat(p.Receivers, p.Processors, p.Exporters) {
			used[part] = true
		}
	}
	for _, e := range c.Service.Extensions {
		used[e] = true
	}
	declared := map[string]bool{}
	for _, kind := range []map[string]any{c.Receivers, c.Exporters, c.Extensions} {
		for name := range kind {
			declared[name] = true
		}
	}
	for name := range c.Processors {
		declared[name] = true
	}
	for name := range declared {
		if !used[name] {
			t.Errorf("%s is declared and not used", name)
		}
	}
	for name := range used {
		if !declared[name] {
			t.Errorf("%s is used and not declared", name)
		}
	}
	if !slices.Contains(c.Service.Pipelines["traces"].Processors, "tail_sampling") {
		t.Error("traces are not sampled by their ends")
	}
	c.judgePolicies(t)
}

func (c *collector) judgePolicies(t *testing.T) {
	t.Helper()
	var outcomes []string
	for o := limit.Allowed; o <= limit.Unable; o++ {
		outcomes = append(outcomes, o.String())
	}
	types := map[string]bool{}
	for _, p := range c.Processors["tail_sampling"].Policies {
		types[p.Type] = true
		switch p.StringAttribute.Key {
		case string(telemetry.AttributeOutcome):
			for _, o := range outcomes {
				if slices.Contains(p.StringAttribute.Values, o) == (o == limit.Allowed.String()) {
					t.Errorf("%s: %v, of the outcomes %v", p.Name, p.StringAttribute.Values, outcomes)
				}
			}
			if len(p.StringAttribute.Values) != len(outcomes)-1 {
				t.Errorf("%s: %v, of the outcomes %v", p.Name, p.StringAttribute.Values, outcomes)
			}
		case "", "service.name", "messaging.destination.name":
		default:
			t.Errorf("%s goes by %s, which no span has", p.Name, p.StringAttribute.Key)
		}
		if k := p.BooleanAttribute.Key; k != "" && k != string(telemetry.AttributeDegraded) {
			t.Errorf("%s goes by %s, which no span has", p.Name, k)
		}
	}
	for _, kind := range []string{"string_attribute", "boolean_attribute", "status_code", "latency", "probabilistic"} {
		if !types[kind] {
			t.Errorf("no policy of type %s", kind)
		}
	}
}
