package advise

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

var regions = []plan.Region{{Name: "eu"}, {Name: "us"}, {Name: "ap"}}

func movesFor(n int) []plan.Move {
	moves := make([]plan.Move, n)
	for i := range moves {
		moves[i] = plan.Move{
			Key:  limit.Key{Tenant: fmt.Sprintf("tenant-%d", i), Route: "create-order"},
			From: 0, To: 1, Amount: 100_000, Held: 700_000, Target: 600_000, Floor: 35_000,
		}
	}
	return moves
}

func receive(t *testing.T, sub *nats.Subscription) (wire.Advice, *nats.Msg) {
	t.Helper()
	msg, err := sub.NextMsg(5 * time.Second)
	if err != nil {
		t.Fatalf("no advice: %v", err)
	}
	var advice wire.Advice
	if err := json.Unmarshal(msg.Data, &advice); err != nil {
		t.Fatal(err)
	}
	return advice, msg
}

func TestAdviceReachesTheGiverInParts(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	sub, err := conn.SubscribeSync(wire.SubjectAdvice("*"))
	if err != nil {
		t.Fatal(err)
	}
	const total = 2000 // more than one message carries
	provider := sdktrace.NewTracerProvider()
	ctx, span := provider.Tracer("test").Start(t.Context(), "cycle")
	a := New(Options{Conn: conn, Instance: "r1", Started: 7, Tracer: provider.Tracer("advise")})
	if err := a.Send(ctx, Cycle{Term: 3, Number: 9}, regions, movesFor(total)); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for part := 1; len(seen) < total; part++ {
		advice, msg := receive(t, sub)
		if msg.Subject != wire.SubjectAdvice("eu") || advice.Term != 3 || advice.Cycle != 9 || advice.Part != part || advice.Parts < 2 || len(msg.Data) > wire.MaxMessageBytes {
			t.Errorf("part %d: subject %s, %d bytes, header %+v", part, msg.Subject, len(msg.Data), advice.Header)
		}
		got := trace.SpanContextFromContext(telemetry.Extract(context.Background(), msg.Header))
		if got.TraceID() != span.SpanContext().TraceID() {
			t.Errorf("trace %s, want %s", got.TraceID(), span.SpanContext().TraceID())
		}
		for _, m := range advice.Moves {
			seen[m.Tenant] = true
			if m.To != "us" || m.From != 700_000 || m.Target != 600_000 || m.Amount != 100_000 || m.Floor != 35_000 || m.Reason == "" {
				t.Fatalf("move %+v", m)
			}
		}
	}
}

func TestAdviceIsRepeatedUntilFollowed(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	sub, err := conn.SubscribeSync(wire.SubjectAdvice("eu"))
	if err != nil {
		t.Fatal(err)
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var held atomic.Int64
	held.Store(700_000)
	a := New(Options{Conn: conn, Repeat: 5 * time.Millisecond, Held: func(limit.Key, string) (limit.Share, bool) {
		return limit.Share(held.Load()), true
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	if err := a.Send(ctx, Cycle{Term: 1, Number: 1}, regions, movesFor(1)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if advice, _ := receive(t, sub); advice.Cycle != 1 || len(advice.Moves) != 1 {
			t.Fatalf("advice %+v", advice)
		}
	}
	held.Store(600_000)
	for deadline := time.Now().Add(5 * time.Second); a.Open() > 0; {
		if time.Now().After(deadline) {
			t.Fatal("still repeated after the giver was seen to have given")
		}
		if _, err := sub.NextMsg(time.Millisecond); err != nil && err != nats.ErrTimeout {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestForgottenAdviceIsSilent(t *testing.T) {
	conn := natsenv.Start(t).Conn(t)
	a := New(Options{Conn: conn})
	if err := a.Send(t.Context(), Cycle{Term: 1, Number: 1}, regions, movesFor(2)); err != nil {
		t.Fatal(err)
	}
	a.Forget()
	if n := a.Open(); n != 0 {
		t.Errorf("%d moves are still open", n)
	}
}
