package parameter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestWithSetsAndRefuses(t *testing.T) {
	v, err := Default().With(map[string]json.RawMessage{
		"cycle": json.RawMessage(`"30s"`), "floor": json.RawMessage(`"30%"`), "deadband": json.RawMessage(`"2.5%"`),
		"step": json.RawMessage(`100000`), "paused": json.RawMessage(`true`), "frozen_regions": json.RawMessage(`["eu"]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v.Plan.Cycle != 30*time.Second || v.Plan.Floor != 0.3 || v.Plan.Deadband != 25_000 || v.Plan.Step != 100_000 || !v.Paused || v.FrozenRegions[0] != "eu" {
		t.Errorf("values %+v", v)
	}
	for _, c := range []struct{ name, value, want string }{
		{"cycle", `30`, "duration"},
		{"cycle", `"1s"`, "cycle: 1s, must be from 10s"},
		{"floor", `1.5`, "floor: 1.5, must be from 0 to 1"},
		{"floor", `null`, "floor"},
		{"headroom", `"2"`, "number"},
		{"headroom", `null`, "headroom: must be a number"},
		{"paused", ` null `, "paused: must be true or false"},
		{"frozen_regions", `null`, "frozen_regions: must be a list"},
		{"history_days", `null`, "history_days"},
		{"floor", `"NaN%"`, "floor: NaN"},
		{"floor", `"-Inf%"`, "floor: -Inf"},
		{"paused", `"yes"`, "true or false"},
		{"cycel", `"30s"`, "no such parameter"},
		{"history_days", `6`, "history_days: 6, must be from 7 to 3650"},
		{"frozen_tenants", `["*"]`, "wildcard"},
		{"control_domain", `3`, "control_domain: must be a name"},
		{"control_domain", `"a\u0000b"`, "control_domain: name"},
		{"step", `-1`, "share -1"},
	} {
		_, err := Default().With(map[string]json.RawMessage{c.name: json.RawMessage(c.value)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %s: %v, want an error with %q", c.name, c.value, err, c.want)
		}
	}
}

func TestEveryParameterReadsWhatItWrites(t *testing.T) {
	for _, d := range All() {
		v, err := Default().With(map[string]json.RawMessage{d.Name: d.Value(Default())})
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if again := d.Value(v); string(again) != string(d.Value(Default())) {
			t.Errorf("%s: wrote %s, read %s", d.Name, d.Value(Default()), again)
		}
	}
}
