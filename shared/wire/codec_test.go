package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files; only right for a new version or a new optional field")

func header(incarnation int64) wire.Header {
	return wire.Header{Version: wire.Version, Region: "eu", Instance: "gw-1", Incarnation: incarnation, Sequence: 7, Started: 1_796_000_000_000}
}

// samples holds one message of each kind with every field set.
var samples = map[string]wire.Message{
	"usage": &wire.Usage{Header: func() wire.Header { h := header(0); h.Part, h.Parts = 1, 2; return h }(), ElapsedMillis: 12_000, Dropped: 3,
		Keys: []wire.KeyUsage{{Tenant: "shop-a", Route: "create-order", Admitted: 120, Refused: 4, Share: 700_000, Tokens: 153.4,
			Sources: []uint32{3, 121}, Refusal: &wire.Refusal{Outcome: "refused", Source: "prefetch", Cost: 2, Tokens: 0.5, WaitMillis: 15, Limit: limit.TenantRoute}}, {Tenant: "shop-b", Route: limit.TenantRoute}}},
	"heartbeat": &wire.Heartbeat{Header: header(0), Rules: limit.Revision{Epoch: 1, Number: 42}, Stale: true, Degraded: true, Draining: true},
	"advice": &wire.Advice{Header: header(0), Term: 3, Cycle: 9,
		Moves: []wire.Move{{Tenant: "shop-a", Route: "create-order", To: "us", From: 700_000, Target: 600_000, Amount: 100_000, Floor: 35_000, Reason: "demand"}}},
	"changed": &wire.Changed{Header: header(0), Revision: limit.Revision{Epoch: 1, Number: 43}},
	"transfer": &wire.Transfer{Header: header(1), To: "us", ReceiverIncarnation: 2,
		Rows: []wire.Row{{Tenant: "shop-a", Route: "create-order", Epoch: 1, Share: 1_100_000, Ride: 1500, Loan: 3, Base: 700_000, Spare: 12.5}}},
	"ack": &wire.Ack{Header: header(2), To: "us", ReceiverIncarnation: 1,
		Rows: []wire.AckRow{{Tenant: "shop-a", Route: "create-order", Epoch: 1, Share: 1_100_000, Ride: 1500, Loan: 3, Refused: 1, Spare: 2.25}}},
	"void": &wire.Void{Header: header(1_796_000_000_123), To: "us", Keys: []wire.KeyName{{Tenant: "shop-a", Route: "create-order"}}, Moved: 3},
	"answer": &wire.Answer{Header: func() wire.Header { h := header(1); h.Part, h.Parts = 1, 2; return h }(), To: "us", ReceiverIncarnation: 1_796_000_000_123,
		Known: 1_796_000_000_124, Blank: true, Relearning: 1_796_000_000_125, Missing: []string{"ap"}, Keys: []wire.AnswerKey{{Tenant: "shop-a", Route: "create-order", Incarnation: 1, Epoch: 1, Base: 700_000,
			Out: [3]int64{500_000, 1500, 3}, In: [4]int64{100_000, 0, 2, 1}, Acked: [4]int64{400_000, 1500, 2, 1},
			Pending: true, Forgot: &wire.Forgot{Account: -100_000, Floor: 35_000, Missing: []string{"ap"}}}}},
	"renewal": &wire.Renewal{Header: header(1_796_000_000_123), Stamp: 86_400_123_456_789, LeaseMillis: 10_000, Fences: true, Floor: 140_000},
	"grant": &wire.Grant{Header: header(1), To: "us", ToInstance: "gw-2", ToStarted: 1_796_000_000_001, ReceiverIncarnation: 1_796_000_000_123,
		Stamp: 86_400_123_456_789, Known: 1_796_000_000_124},
	"consume":  &wire.Consume{Header: header(0), To: "us", Tenant: "shop-a", Route: "login", Cost: 2, BudgetMillis: 70},
	"return":   &wire.Return{Header: header(0), To: "us", ToInstance: "gw-2", ToStarted: 1_796_000_000_001, Reply: 12},
	"consumed": &wire.Consumed{Header: header(0), Outcome: wire.ConsumedRefused, Remaining: 1, RetryMicros: 12_000_000, ResetMicros: 60_000_000},
	"ask":      &wire.Ask{Header: header(0), To: "us", Keys: []wire.AskKey{{Tenant: "shop-a", Route: "create-order", Need: 12.5, Flow: 3, Rate: 40, Fill: 7, Urgent: true, LifeMillis: 750, Spare: 0.5}}},
}

func fresh(m wire.Message) wire.Message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(wire.Message)
}

// The bytes of version 1 are a promise to the other side of a rolling upgrade.
func TestGolden(t *testing.T) {
	for name, m := range samples {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", fmt.Sprintf("v%d", wire.Version), name+".json")
			got, err := wire.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(bytes.TrimSpace(want)), string(got)); d != "" {
				t.Errorf("encoded bytes changed:\n%s", d)
			}
			back := fresh(m)
			if err := wire.Decode(want, back); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(m, back); d != "" {
				t.Errorf("decoded golden file:\n%s", d)
			}
		})
	}
}

// A newer sender of the same major version may say more, at every level.
func TestDecodeIgnoresUnknownFields(t *testing.T) {
	for name, m := range samples {
		data, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		more := strings.ReplaceAll(string(data), "{", `{"later":{"deep":[1,"x"]},`)
		back := fresh(m)
		if err := wire.Decode([]byte(more), back); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(m, back); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	edit := func(name, old, new string) string {
		data, err := wire.Encode(samples[name])
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), old, new, 1)
		if text == string(data) {
			t.Fatalf("%s does not hold %s", data, old)
		}
		return text
	}
	for _, tc := range []struct {
		name string
		text string
		into wire.Message
		want error
	}{
		{"nothing", ``, &wire.Usage{}, wire.ErrMalformed},
		{"no object", `[1]`, &wire.Usage{}, wire.ErrMalformed},
		{"cut short", `{"v":1,"region":"eu"`, &wire.Usage{}, wire.ErrMalformed},
		{"no version", edit("usage", `"v":1`, `"w":1`), &wire.Usage{}, wire.ErrVersion},
		{"later version of another shape", `{"v":2,"region":{"name":"eu"}}`, &wire.Usage{}, wire.ErrVersion},
		{"no region", edit("usage", `"region":"eu"`, `"region":""`), &wire.Usage{}, wire.ErrMalformed},
		{"wildcard tenant", edit("advice", `"t":"shop-a"`, `"t":"*"`), &wire.Advice{}, wire.ErrMalformed},
		{"long route", edit("usage", `create-order`, strings.Repeat("x", 129)), &wire.Usage{}, wire.ErrMalformed},
		{"negative counter", edit("usage", `"a":120`, `"a":-1`), &wire.Usage{}, wire.ErrMalformed},
		{"share above the whole", edit("usage", `700000`, `1000001`), &wire.Usage{}, wire.ErrMalformed},
		{"too many sources", edit("usage", `"src":[3,`, `"src":[`+strings.Repeat("3,", 20)), &wire.Usage{}, wire.ErrMalformed},
		{"long source", edit("usage", `"src":"prefetch"`, `"src":"`+strings.Repeat("x", 33)+`"`), &wire.Usage{}, wire.ErrMalformed},
		{"negative wait", edit("usage", `"w":15`, `"w":-15`), &wire.Usage{}, wire.ErrMalformed},
		{"part beyond parts", edit("usage", `"part":1`, `"part":3`), &wire.Usage{}, wire.ErrMalformed},
		{"negative amount", edit("advice", `"amount":100000`, `"amount":-1`), &wire.Advice{}, wire.ErrMalformed},
		{"negative row", edit("transfer", `"s":1100000`, `"s":-1`), &wire.Transfer{}, wire.ErrMalformed},
		{"negative loan", edit("ack", `"loan":3`, `"loan":-3`), &wire.Ack{}, wire.ErrMalformed},
		{"number too large", edit("changed", `"revision":"1.43"`, `"revision":"1.99999999999999999999"`), &wire.Changed{}, wire.ErrMalformed},
		{"too many bytes", `{"v":1,"x":"` + strings.Repeat("x", wire.MaxMessageBytes) + `"}`, &wire.Usage{}, wire.ErrTooLarge},
		{"too many items", edit("usage", `"keys":[`, `"keys":[`+strings.Repeat(`{"t":"a","r":"b"},`, wire.MaxItems)), &wire.Usage{}, wire.ErrTooLarge},
	} {
		if err := wire.Decode([]byte(tc.text), tc.into); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	u := &wire.Usage{Header: header(0), Keys: make([]wire.KeyUsage, 20_000)}
	if _, err := wire.Encode(u); !errors.Is(err, wire.ErrTooLarge) {
		t.Fatal(err)
	}
}

// Whatever the names, every chunk fits a message and nothing is lost, repeated or reordered.
func TestChunksAlwaysFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, limit.MaxNameBytes, limit.MaxNameBytes)
		kinds := rapid.SliceOfN(name, 1, 4).Draw(t, "names")
		n := rapid.IntRange(0, 6000).Draw(t, "n")
		keys := make([]wire.KeyUsage, n)
		for i := range keys {
			k := kinds[i%len(kinds)]
			keys[i] = wire.KeyUsage{Tenant: k, Route: k, Admitted: 1<<64 - 1, Refused: 1<<64 - 1 - uint64(i), Share: limit.Whole, Tokens: -1.2345678901234567e-300,
				Sources: []uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, Refusal: &wire.Refusal{Outcome: "refused", Source: k, Cost: 1<<63 - 1, Tokens: -1.2345678901234567e-300, WaitMillis: 1<<63 - 1, Limit: k}}
		}
		var joined []wire.KeyUsage
		chunks := wire.Chunks(keys)
		for _, c := range chunks {
			data, err := json.Marshal(&wire.Usage{Header: header(1 << 62), Keys: c})
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > wire.MaxMessageBytes || len(c) > wire.MaxItems {
				t.Fatalf("chunk of %d items takes %d bytes", len(c), len(data))
			}
			joined = append(joined, c...)
		}
		if len(chunks) == 0 || !cmp.Equal(keys, joined, cmpopts.EquateEmpty()) {
			t.Fatal("chunks do not join to what was split")
		}
	})
}

// Whatever arrives, Decode answers with a message that Encode can write again, or with one of its three errors.
func FuzzDecode(f *testing.F) {
	kinds := []string{"usage", "heartbeat", "advice", "changed", "transfer", "ack"}
	for i, kind := range kinds {
		data, err := wire.Encode(samples[kind])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), data)
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		m := fresh(samples[kinds[int(kind)%len(kinds)]])
		err := wire.Decode(data, m)
		if err != nil {
			if !errors.Is(err, wire.ErrTooLarge) && !errors.Is(err, wire.ErrVersion) && !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		again, err := wire.Encode(m)
		if errors.Is(err, wire.ErrTooLarge) {
			return // written out, a message can be longer than its shortest form
		}
		if err != nil {
			t.Fatal(err)
		}
		back := fresh(m)
		if err := wire.Decode(again, back); err != nil {
			t.Fatalf("own bytes refused: %v", err)
		}
		if !cmp.Equal(m, back) {
			t.Fatal(cmp.Diff(m, back))
		}
	})
}
