package usage_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric/noop"

	"partidor.dev/partidor/gateway/internal/control/usage"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

const beat = 20 * time.Millisecond

func run(t *testing.T, part func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := part(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		case <-tick.C:
		}
	}
}

// live starts an instance that beats and returns its view, and how to stop it.
func live(t *testing.T, server *natsenv.Server, name string) (*usage.Members, func()) {
	t.Helper()
	who := usage.Identity{Region: "eu", Instance: name, Started: time.Now()}
	members := usage.NewMembers(name, usage.Period(beat), 1)
	heart := usage.NewHeart(server.Conn(t, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})), who, beat, members, func() usage.Vitals { return usage.Vitals{} }, slog.New(slog.DiscardHandler))
	return members, run(t, heart.Run)
}

func TestInstancesFindEachOtherOverNATS(t *testing.T) {
	server := natsenv.Start(t)
	a, _ := live(t, server, "a")
	b, _ := live(t, server, "b")
	_, stop := live(t, server, "c")
	until(t, "all three see three", func() bool { return a.Live() == 3 && b.Live() == 3 })
	stop() // says goodbye
	until(t, "two are left", func() bool { return a.Live() == 2 && b.Live() == 2 })
	server.Restart()
	until(t, "both see both after NATS was restarted", func() bool { return a.Live() == 2 && b.Live() == 2 })
}

func TestReportsAreSentInChunksAndOnceMoreAtTheEnd(t *testing.T) {
	server := natsenv.Start(t)
	reports := make(chan wire.Usage, 100)
	sub, err := server.Conn(t).Subscribe(wire.SubjectUsage("eu"), func(m *nats.Msg) {
		var u wire.Usage
		if err := wire.Decode(m.Data, &u); err != nil {
			t.Error(err)
		}
		reports <- u
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}
	table := usage.NewTable(10_000)
	const keys = 3000
	for i := range keys {
		table.Count(limit.Key{Tenant: "tenant", Route: time.Duration(i).String()}, 1, true, limit.Decision{})
	}
	who := usage.Identity{Region: "eu", Instance: "a", Started: time.Now()}
	conn := server.Conn(t)
	reporter, err := usage.NewReporter(table, conn, who, time.Hour, slog.New(slog.DiscardHandler), noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, reporter.Run)() // the first report is an hour away: this is the one at the end
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	seen, last := 0, uint64(0)
	for parts := 1; parts > 0; parts-- {
		u := <-reports
		if u.Part == 1 {
			parts = u.Parts
		}
		if u.Sequence != last+1 || u.Region != "eu" || u.Instance != "a" {
			t.Errorf("header %+v after sequence %d", u.Header, last)
		}
		last = u.Sequence
		seen += len(u.Keys)
	}
	if seen != keys || last < 2 {
		t.Errorf("%d keys in %d chunks, want %d in several", seen, last, keys)
	}
}

// A subscriber that cannot keep up loses heartbeats, not memory, and the count recovers.
func TestSlowConsumerDropsAndRecovers(t *testing.T) {
	server := natsenv.Start(t)
	flood := server.Conn(t)
	members, _ := live(t, server, "a")
	until(t, "a hears itself", func() bool { return members.Live() == 1 })
	h := wire.Heartbeat{Header: wire.Header{Region: "eu", Started: 1}}
	for i := range 50_000 {
		h.Instance = "flood-" + time.Duration(i%100).String()
		data, err := wire.Encode(&h)
		if err != nil {
			t.Fatal(err)
		}
		if err := flood.Publish(wire.SubjectHeartbeat("eu"), data); err != nil {
			t.Fatal(err)
		}
	}
	if err := flood.Flush(); err != nil {
		t.Fatal(err)
	}
	until(t, "the flood is over and forgotten", func() bool { return members.Live() == 1 })
}
