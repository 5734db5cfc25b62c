package rulesfile

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/shared/limit"
)

const example = `revision: 3
regions: {eu: 70%, us: {base: 300000, floor: 5%, domain: b}}
default: {capacity: 20, refill_per_second: 10}
rules:
  - {tenant: shop-a, route: create-order, capacity: 200, refill_per_second: 100, max_cost: 40}
  - tenant: "@gold"
    route: "*"
    capacity: 600
    refill_per_second: 5
    refill_period_seconds: 60
    expires_at: 2026-12-24T00:00:00Z
  - {tenant: "*", route: export, mode: block}
  - {tenant: shop-a, route: report, algorithm: fixed_window, window: day, capacity: 7}
tenants:
  - {id: shop-a, plan: gold}
api_keys:
  - {tenant: shop-a, key: shop-a}
`

func TestParseReadsEverything(t *testing.T) {
	f, err := Parse("rules.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	floor := Part(50_000)
	want := map[string]Region{"eu": {Base: 700_000}, "us": {Base: 300_000, Floor: &floor, Domain: "b"}}
	if diff := cmp.Diff(want, f.Regions); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
	if got := f.Rules[0].Limit(limit.Revision{}).MaxCost; got != 40 {
		t.Errorf("the largest cost of shop-a/create-order is %d, want 40", got)
	}
	gold := f.Rules[1].Limit(limit.Revision{Number: 3})
	if diff := cmp.Diff(&limit.Rule{Capacity: 600, Refill: 5, PeriodSeconds: 60, Revision: limit.Revision{Number: 3},
		ExpiresAt: time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)}, gold); diff != "" {
		t.Errorf("rule of the plan gold (-want +got):\n%s", diff)
	}
	for i := range f.Rules {
		if err := f.Rules[i].Limit(limit.Revision{}).Validate(); err != nil {
			t.Errorf("rule %d in the form that decides: %v", i, err)
		}
	}
}

func TestMarshalThenParseIsTheSame(t *testing.T) {
	f, err := Parse("rules.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("out.yaml", out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	once, _ := again.Marshal()
	if string(once) != string(out) {
		t.Errorf("second export differs:\n%s\nfirst:\n%s", once, out)
	}
}

// TestParseNamesLineAndField holds the cases limits 44, 46, 47, 53 for the file.
func TestParseNamesLineAndField(t *testing.T) {
	for _, c := range []struct {
		name, file, want string
	}{
		{"unknown field", "rules:\n  - {tenant: a, route: b, capacty: 3}\n", `f:2: rules[0].capacty: unknown field, did you mean capacity?`},
		{"duplicate field", "revision: 1\nrevision: 2\n", `f:2: `},
		{"burst 0", "rules:\n  - tenant: a\n    route: b\n    refill_per_second: 1\n    capacity: 0\n", "f:5: rules[0].capacity: 0, must be at least 1 (to refuse everything say mode: block"},
		{"capacity -1", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: -1}\n", "f:2: rules[0].capacity: -1"},
		{"rate -5", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: -5}\n", "f:2: rules[0].refill_per_second: -5"},
		{"period 60s", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: 1, refill_period_seconds: 60s}\n", "f:2: rules[0]."},
		{"period 1m", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: 1, refill_period_seconds: 1m}\n", "f:2: rules[0]."},
		{"capacity .inf", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: .inf}\n", "f:2: rules[0]."},
		{"capacity .nan", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: .nan}\n", "f:2: rules[0]."},
		{"capacity 1.5", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: 1.5}\n", "f:2: rules[0]."},
		{"period 0", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: 1, refill_period_seconds: 0}\n", "f:2: rules[0].refill_period_seconds: 0, must be from 1 to"},
		{"period 0 of the default", "default: {capacity: 1, refill_per_second: 1, refill_period_seconds: 0}\n", "f:1: default.refill_period_seconds: 0"},
		{"octal", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: 010}\n", "f:2: rules[0].capacity: a whole number expected"},
		{"hexadecimal", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: 0x10}\n", "f:2: rules[0].capacity: a whole number expected"},
		{"capacity above 2^64", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: 99999999999999999999}\n", "f:2: rules[0]."},
		{"capacity above 2^63", "rules:\n  - {tenant: a, route: b, refill_per_second: 1, capacity: 9223372036854775808}\n", "f:2: rules[0]."},
		{"no time", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: 1, expires_at: tomorrow}\n", "f:2: rules[0].expires_at: a time expected, such as"},
		{"a time beyond all", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: 1, expires_at: 12026-12-24T00:00:00Z}\n", "f:2: rules[0].expires_at: a time expected"},
		{"year 1", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: 1, expires_at: 0001-01-01T00:00:00Z}\n", "f:2: rules[0].expires_at: must be a time from 1970"},
		{"default that ends", "default: {capacity: 1, refill_per_second: 1, expires_at: 2027-01-01T00:00:00Z}\n", "f:1: default.expires_at"},
		{"revision 1.5", "revision: 1.5\n", "f:1: revision: a whole number expected"},
		{"revision \"3\"", "revision: \"3\"\n", "f:1: revision: "},
		{"shares", "revision: 1\nregions: {eu: 70%, us: 40%}\n", "f:2: regions: shares add up to 110%, must be exactly 100%"},
		{"share too fine", "regions: {eu: 33.33333%, us: 66.66667%}\n", "f:1: regions.eu: share"},
		{"region name", "regions:\n  eu: 70%\n  u.s: 30%\n", "f:3: regions.u.s: region names"},
		{"twice", "rules:\n  - {tenant: a, route: b, capacity: 1, refill_per_second: 1}\n  - {tenant: a, route: b, capacity: 2, refill_per_second: 1}\n", `f:3: rules[1].route: tenant "a" and route "b" have a rule already, rules[0]`},
		{"bad hash", "api_keys:\n  - {tenant: a, sha256: abc}\n", "f:2: api_keys[0].sha256: must be 64 hex digits"},
		{"largest cost above the capacity", "rules:\n  - {tenant: a, route: b, capacity: 9, refill_per_second: 1, max_cost: 10}\n", "f:2: rules[0].max_cost: 10, must be from 1 to 9"},
		{"largest cost -1", "rules:\n  - {tenant: a, route: b, capacity: 9, refill_per_second: 1, max_cost: -1}\n", "f:2: rules[0].max_cost: -1"},
		{"bad mode", "rules:\n  - {tenant: a, route: b, mode: of}\n", "f:2: rules[0]."},
		{"shards of tenant", "rules:\n  - {tenant: a, route: '@tenant', capacity: 9, refill_per_second: 1, shards: 4}\n", "f:2: rules[0].shards: not for @tenant"},
		{"shards beside a tenant limit", "rules:\n  - {tenant: a, route: '@tenant', capacity: 9, refill_per_second: 1}\n  - {tenant: a, route: r, capacity: 9, refill_per_second: 1, shards: 4}\n", "f:3: rules[1].shards: cannot be charged together"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.file))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want it to hold %q", err, c.want)
			}
		})
	}
}

func TestParseOfOneBadLineInManyNamesIt(t *testing.T) {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 10_000 {
		capacity := "5"
		if i == 7_311 {
			capacity = "0"
		}
		b.WriteString("  - {tenant: t, route: r" + strings.Repeat("x", i%7) + "-" + time.Duration(i).String() + ", capacity: " + capacity + ", refill_per_second: 1}\n")
	}
	_, err := Parse("many.yaml", []byte(b.String()))
	if err == nil || !strings.HasPrefix(err.Error(), "many.yaml:7313: rules[7311].capacity") {
		t.Errorf("error %v, want it to name line 7313", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("regions: [1]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data)
		if err != nil {
			return
		}
		if err := file.Validate(); err != nil {
			t.Errorf("accepted by Parse, refused by Validate: %v", err)
		}
	})
}

func FuzzParsePart(f *testing.F) {
	f.Add("70%")
	f.Add("700000")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePart(s)
		if err != nil {
			return
		}
		if again, err := ParsePart(p.String()); err != nil || again != p {
			t.Errorf("ParsePart(%q) = %d, its string %q reads as %d, %v", s, p, p.String(), again, err)
		}
	})
}

// What JSON can say of a rule, for the API: an explicit 0 seconds is not one second, and the zero time not "never".
func TestRuleInJSON(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"tenant":"a","route":"b","capacity":1,"refill_per_second":1,"refill_period_seconds":0}`, "refill_period_seconds: 0, must be from 1"},
		{`{"tenant":"a","route":"b","capacity":1,"refill_per_second":1,"refill_period_seconds":-1}`, "refill_period_seconds: -1"},
		{`{"tenant":"a","route":"b","capacity":1,"refill_per_second":1,"refill_period_seconds":"60"}`, "refill_period_seconds"},
		{`{"tenant":"a","route":"b","capacity":1,"refill_per_second":1,"expires_at":"0001-01-01T00:00:00Z"}`, "expires_at: must be a time"},
		{`{"tenant":"a","route":"b","capacity":1,"refill_per_second":1,"refill_period_seconds":60}`, ""},
		{`{"tenant":"a","route":"b","capacity":1,"refill_per_second":1,"refill_period_seconds":null}`, ""},
	} {
		var r Rule
		err := json.Unmarshal([]byte(c.body), &r)
		if err == nil {
			err = r.Validate()
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: refused: %v", c.body, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.body, err, c.want)
		}
	}
}
