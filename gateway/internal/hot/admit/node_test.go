package admit

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
)

// cluster is a store of two nodes: tenants whose name begins with "a" live on node a, the others on b.
type cluster struct {
	a, b *fakeStore
}

func (c *cluster) Node(key limit.Key) string {
	if strings.HasPrefix(key.Tenant, "a") {
		return "a"
	}
	return "b"
}

func (c *cluster) Take(ctx context.Context, limits []bucket.Limit) (limit.Decision, error) {
	if c.Node(limits[0].Key) == "a" {
		return c.a.Take(ctx, limits)
	}
	return c.b.Take(ctx, limits)
}

func TestAFaultOfOneNodeLeavesTheOthersInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, logs := &cluster{a: newFakeStore(), b: newFakeStore()}, new(bytes.Buffer)
		a := newAdmitter(t, Options{
			Rules: rules(t, set("*", "items", 1000, 1000)), Store: store, Logger: slog.New(slog.NewTextHandler(logs, nil)),
		})
		ask := func(tenant string) limit.Decision {
			return a.Admit(t.Context(), time.Now(), Request{Tenant: tenant, Route: "items", Cost: 1})
		}
		store.a.set(errAway, 0)
		for range 100 {
			if d := ask("anna"); d.Source != limit.SourceFallback {
				t.Fatalf("anna: by %v", d.Source)
			}
			if d := ask("bert"); d.Source != limit.SourceRedis {
				t.Fatalf("bert: by %v", d.Source)
			}
		}
		if n := store.a.count(); n > 20 || !a.Degraded() || a.nodes.away() != 1 {
			t.Errorf("the failing node was asked %d times, %d nodes are away", n, a.nodes.away())
		}
		if !strings.Contains(logs.String(), "node=a") || strings.Count(logs.String(), "\n") != 1 {
			t.Errorf("log:\n%s", logs)
		}
	})
}

// A node that has come back is found without a request that waits for it.
func TestANodeIsTriedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		a := newAdmitter(t, Options{Rules: rules(t, set("t1", "items", 100, 1)), Store: store})
		stop := run(t, a)
		store.set(errAway, 0)
		for range 30 {
			admit(t, a)
		}
		if !a.Degraded() {
			t.Fatal("not degraded")
		}
		store.set(nil, 0)
		time.Sleep(2 * time.Second)
		if a.Degraded() {
			t.Error("still degraded, with nobody asking")
		}
		if a.local.Owing() {
			t.Error("still owing")
		}
		// 30 were admitted, 2 s have passed.
		if d := admit(t, a); d.Remaining < 100-30-1 || d.Remaining > 100-30-1+2 {
			t.Errorf("%d left", d.Remaining)
		}
		stop()
	})
}
