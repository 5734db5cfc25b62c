package usage_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"partidor.dev/partidor/gateway/internal/control/usage"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// mostBytes bounds what a key that changed takes in a report, with names of usual length. deploy/docs/capacity.md reckons with it.
const mostBytes = 80

// counted is a Publisher that counts bytes.
type counted struct{ bytes atomic.Int64 }

func (c *counted) Publish(_ string, data []byte) error { c.bytes.Add(int64(len(data))); return nil }

func (c *counted) IsConnected() bool { return true }

func keysOf(n int) []limit.Key {
	keys := make([]limit.Key, n)
	for i := range keys {
		keys[i] = limit.Key{Tenant: fmt.Sprintf("tenant-%06d", i), Route: "create-order"}
	}
	return keys
}

// However many keys are asked for, an instance says no more in a minute than its table has room for.
func TestBytesPerMinuteAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room, interval = 1000, 2 * time.Second
		table, conn := usage.NewTable(room), new(counted)
		r, err := usage.NewReporter(table, conn, usage.Identity{Region: "eu", Instance: "eu-1", Started: time.Now()}, interval, slog.New(slog.DiscardHandler), noop.Meter{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = r.Run(t.Context()) }()
		keys := keysOf(5 * room)
		for range time.Minute / interval {
			for _, k := range keys {
				table.Count(k, 1, true, limit.Decision{Key: k, Source: limit.SourceRedis})
			}
			time.Sleep(interval)
		}
		synctest.Wait()
		got, most := conn.bytes.Load(), int64(room*mostBytes*time.Minute/interval)
		if got > most || got < most/4 {
			t.Errorf("%d bytes in a minute of 5,000 busy keys, want at most %d of the 1,000 that there is room for", got, most)
		}
	})
}

// BenchmarkReport makes the report of 10,000 keys that all changed, and tells what it puts on NATS.
func BenchmarkReport(b *testing.B) {
	table, keys := usage.NewTable(1<<20), keysOf(10_000)
	sent := 0
	for b.Loop() {
		for _, k := range keys {
			table.Count(k, 1, true, limit.Decision{Key: k, Source: limit.SourceRedis})
		}
		var all []wire.KeyUsage
		table.Report(time.Minute, func(k wire.KeyUsage) { all = append(all, k) })
		sent = 0
		for i, chunk := range wire.Chunks(all) {
			u := wire.Usage{Header: wire.Header{Region: "eu", Instance: "eu-1", Started: 1}, Keys: chunk}
			u.Sequence, u.Part = uint64(i+1), i+1
			data, err := wire.Encode(&u)
			if err != nil {
				b.Fatal(err)
			}
			sent += len(data)
		}
	}
	b.ReportMetric(float64(sent)/float64(len(keys)), "B/key")
	b.ReportMetric(float64(sent)*30/1e6, "MB/min-every-2s")
}
