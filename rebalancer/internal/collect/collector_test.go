package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

func TestCollectsOverNATS(t *testing.T) {
	server := natsenv.Start(t)
	conn := server.Conn(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c, err := New(Options{Conn: conn, Window: 20 * time.Millisecond, SilentAfter: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()

	g := newGateway("eu", "g1", 0)
	publish := func(subject string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.PublishMsg(&nats.Msg{Subject: subject, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case <-deadline:
			t.Fatalf("no demand after 10 s: %+v", c.Regions(time.Now()))
		case <-tick.C:
		}
		g.serve(shop, 5, 5)
		publish(wire.SubjectUsage("eu"), g.report(time.Since(began)))
		publish(wire.SubjectHeartbeat("eu"), wire.Heartbeat{Header: g.report(time.Since(began)).Header})
		publish(wire.SubjectUsage("us"), g.report(time.Since(began))) // eu's report on us's subject
		if err := conn.Publish(wire.SubjectUsage("eu"), []byte("{")); err != nil {
			t.Fatal(err)
		}
		d := c.Refused(time.Now(), []string{"eu", "us"})
		if len(d) == 1 && d[0].Loads[0].Known && d[0].Loads[0].Mean > 0 && d[0].Loads[0].Share == 500_000 {
			if d[0].Loads[1].Known {
				t.Error("us is known by a report that eu sent on its subject")
			}
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Ingest, JSON included: at least 200,000 key updates per second on one core.
func BenchmarkIngest(b *testing.B) {
	c, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	const keys, perReport = 100_000, 2_000
	g := newGateway("eu", "g1", 0)
	var reports [][]byte
	for i := range keys {
		g.serve(limit.Key{Tenant: fmt.Sprintf("tenant-%06d", i), Route: "create-order"}, uint64(i), uint64(i%7))
		if (i+1)%perReport == 0 {
			u := g.report(time.Second)
			u.Sequence = 1
			data, err := json.Marshal(u)
			if err != nil {
				b.Fatal(err)
			}
			reports = append(reports, data)
		}
	}
	n, sequence := 0, uint64(0)
	b.ReportAllocs()
	runtime.GC() // what making the reports left behind is not theirs
	used := cpuTime(b)
	for b.Loop() {
		var u wire.Usage
		if !c.decode(&nats.Msg{Subject: wire.SubjectUsage("eu"), Data: reports[n%len(reports)]}, &u, &u.Header) {
			b.Fatal("not decoded")
		}
		sequence++
		u.Sequence, u.ElapsedMillis = sequence, int64(sequence)*100
		for i := range u.Keys {
			u.Keys[i].Admitted += sequence
		}
		c.mu.Lock()
		c.table.Usage(c.now(), &u)
		c.mu.Unlock()
		n++
	}
	// Per second of processor time, garbage collection included: what others on the machine do not change.
	b.ReportMetric(float64(n*perReport)/(cpuTime(b)-used).Seconds(), "keys/cpu-s")
	b.ReportMetric(float64(len(reports[0]))/perReport, "bytes/key")
}

// cpuTime is the processor time this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
