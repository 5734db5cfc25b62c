package collect

import (
	"maps"
	"slices"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/wire"
)

// A region that was removed or declared dead falls silent for good: its silence grows in nobody's metrics and calls nobody. One that
// ought to be there is told however long it is away.
func TestSilenceOfRemovedRegionsIsNotTold(t *testing.T) {
	now := time.Now()
	reader := sdkmetric.NewManualReader()
	c, err := New(Options{Clock: func() time.Time { return now }, Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")})
	if err != nil {
		t.Fatal(err)
	}
	silence := func() map[string]float64 {
		t.Helper()
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, m := range all.ScopeMetrics[0].Metrics {
			if data, ok := m.Data.(metricdata.Gauge[float64]); ok && m.Name == "partidor.collect.region.silence" {
				for _, p := range data.DataPoints {
					region, _ := p.Attributes.Value(telemetry.AttributeRegion)
					out[region.AsString()] = p.Value
				}
			}
		}
		return out
	}
	for _, region := range []string{"ap", "eu", "us"} {
		c.table.Usage(c.now(), newGateway(region, "g1", 0).report(0))
	}
	if got := slices.Sorted(maps.Keys(silence())); !slices.Equal(got, []string{"ap", "eu", "us"}) {
		t.Errorf("while all speak %v are told", got)
	}
	c.Expect([]string{"eu", "us"})
	now = now.Add(2 * time.Hour)
	if got := silence(); len(got) != 2 || got["us"] != 7200 || got["eu"] != 7200 {
		t.Errorf("two hours after: %v, want the silence of eu and us", got)
	}
	c.table.Usage(c.now(), newGateway("ap", "g2", 2*time.Hour).report(2*time.Hour))
	if got := silence(); got["ap"] != 0 || len(got) != 3 {
		t.Errorf("a removed region that speaks again: %v", got)
	}
	c.Expect(nil)
	now = now.Add(time.Hour)
	if got := silence(); len(got) != 0 {
		t.Errorf("who does not lead expects nobody: %v", got)
	}
}

// A gateway that decides without its Redis, or decides nothing, goes on saying the share it last saw. It overrules nobody who asks
// the store; whoever is alone is believed, unless all it decides is without the store.
func TestOldSharesOverruleNobody(t *testing.T) {
	key := limit.Key{Tenant: "a", Route: "r"}
	say := func(admitted uint64, share limit.Share, sources ...uint32) wire.KeyUsage {
		return wire.KeyUsage{Tenant: key.Tenant, Route: key.Route, Admitted: admitted, Share: share, Sources: sources}
	}
	fallback := make([]uint32, limit.SourceFallback+1)
	fallback[limit.SourceFallback] = 5
	mixed := slices.Clone(fallback)
	mixed[limit.SourceRedis] = 1
	for _, c := range []struct {
		name   string
		then   wire.KeyUsage // of eu-2, after eu-1 has moved on to 40 %
		before time.Duration
		want   limit.Share
	}{
		{"decides with the store", say(9, 300_000), time.Second, 300_000},
		{"decides partly without", say(9, 300_000, mixed...), time.Second, 300_000},
		{"decides without the store", say(9, 300_000, fallback...), time.Second, 400_000},
		{"decides nothing", say(1, 300_000), time.Second, 400_000},
		{"decides nothing, nor does anybody else", say(1, 300_000), time.Minute, 300_000},
		{"decides without the store, alone", say(9, 300_000, fallback...), time.Minute, 400_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, _ := testTable(Options{})
			one, two := newGateway("eu", "eu-1", 0), newGateway("eu", "eu-2", 0)
			one.say(table, time.Second, say(1, 500_000))
			two.say(table, time.Second, say(1, 500_000))
			one.say(table, 2*time.Second, say(2, 400_000))
			now := 2*time.Second + c.before
			two.say(table, now, c.then)
			if got := table.Loads(now, []limit.Key{key}, []string{"eu"})[0].Loads[0].Share; got != c.want {
				t.Errorf("share %d, want %d", got, c.want)
			}
		})
	}
	table, _ := testTable(Options{})
	newGateway("eu", "eu-1", 0).say(table, time.Second, say(5, 500_000, fallback...))
	if got := table.Loads(time.Second, []limit.Key{key}, []string{"eu"})[0].Loads[0].Share; got != 0 {
		t.Errorf("a share that only the fallback says is %d, want unknown", got)
	}
}
