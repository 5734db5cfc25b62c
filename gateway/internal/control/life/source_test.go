package life

import (
	"testing"

	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/testenv"
)

// Gateways come and go with sources a and b; each step is a look of one of them, and the generation it goes by afterwards.
func TestSourceThatBeganLastIsInForce(t *testing.T) {
	client, err := redisconn.New(redisconn.Options{Addrs: []string{testenv.StartRedis(t).Addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ready := true
	gateways := map[string]*Source{}
	for i, step := range []struct {
		gateway, source string
		want            int64
		before          string
	}{
		{"1", "a", 0, ""},
		{"2", "a", 0, ""},
		{"3", "b", 1, ""},  // another source
		{"1", "a", 0, ""},  // who was there before does not take over
		{"4", "b", 1, ""},  // nor does another of the same source begin anew
		{"5", "a", 2, ""},  // back
		{"2", "a", 2, ""},  // whose source it is goes along
		{"3", "b", 1, ""},  // and the other one not
		{"6", "a", 0, "-"}, // the data is lost, and a new gateway is the first to look
		{"5", "a", 2, ""},  // until one that remembers does
		{"6", "a", 2, ""},
		{"3", "b", 1, "-"}, // lost again, and one that had been overtaken comes first
		{"5", "a", 2, ""},
		{"3", "b", 1, ""},
		{"7", "b", -1, "away"}, // has rules of a source before its own
		{"7", "b", 3, ""},
	} {
		if step.before == "-" {
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		ready = step.before != "away"
		g := gateways[step.gateway]
		if g == nil {
			g = NewSource(SourceOptions{Name: step.source, Ready: func() bool { return ready }, Tell: func(int64) {}})
			gateways[step.gateway] = g
		}
		if err := g.Look(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		if got := g.generation.Load(); got != step.want {
			t.Fatalf("step %d: gateway %s goes by generation %d, want %d", i, step.gateway, got, step.want)
		}
	}
}
