package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

// world is a ledger, a NATS server and two pretended regions that report traffic.
type world struct {
	url  string
	db   *pgx.Conn
	nats *natsenv.Server
	conn *nats.Conn
	// shares that the regions say they hold; they say none where there are none.
	shares map[string]limit.Share
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pg := testenv.StartPostgres(t)
	m, err := OpenMigration("", pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // nothing is left to be written
	if s := m.Up(t.Context()); s.Err != nil {
		t.Fatal(s.Err)
	}
	w := &world{url: pg.URL, db: pg.Conn(t), nats: natsenv.Start(t)}
	w.conn = w.nats.Conn(t)
	w.exec(t, `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`)
	w.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second) VALUES ('shop-a', 'create-order', 200, 100)`)
	return w
}

func (w *world) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := w.db.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// start runs a rebalancer until the test or the returned stop ends it, and answers the URL of its admin port.
func (w *world) start(t *testing.T, name string) (url string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Listener: listener, LogOutput: io.Discard, Cycle: 2 * time.Second, Config: fmt.Appendf(nil,
			"instance: %s\npostgres: {url: \"%s\"}\nnats: {urls: [\"%s\"]}\naccess: {anonymous: operator}\n", name, w.url, w.nats.URL)})
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("rebalancer %s: %v", name, err)
		}
	}
	t.Cleanup(stop)
	return "http://" + listener.Addr().String(), stop
}

// traffic reports, every quarter of a second until the test ends, so many tokens per second in each region.
func (w *world) traffic(t *testing.T, rates map[string]float64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	started := time.Now()
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for seq := uint64(1); ; seq++ {
			for region, rate := range rates {
				elapsed := time.Since(started)
				data, err := wire.Encode(&wire.Usage{
					Header:        wire.Header{Version: wire.Version, Region: region, Instance: region + "-1", Sequence: seq, Started: started.UnixMilli()},
					ElapsedMillis: elapsed.Milliseconds(),
					Keys: []wire.KeyUsage{{Tenant: "shop-a", Route: "create-order", Admitted: uint64(elapsed.Seconds() * rate), Share: w.shares[region], Sources: []uint32{1, 3},
						Refusal: &wire.Refusal{Outcome: "refused", Source: "prefetch", Cost: 2, Tokens: 1.5, WaitMillis: 50}}},
				})
				if err == nil {
					err = w.conn.Publish(wire.SubjectUsage(region), data)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}

// eventually asks again until ok, for at most twenty seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		<-tick.C
	}
}

func get(t *testing.T, url string, into any) int {
	t.Helper()
	res, err := http.Get(url) //nolint:noctx // a test
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	return res.StatusCode
}

func TestSplitFollowsTheTraffic(t *testing.T) {
	w := newWorld(t)
	advice := make(chan wire.Advice, 100)
	sub, err := w.conn.Subscribe(wire.SubjectAdvice("eu"), func(m *nats.Msg) {
		var a wire.Advice
		if err := wire.Decode(m.Data, &a); err != nil {
			t.Error(err)
			return
		}
		select {
		case advice <- a:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection goes with the test
	url, stop := w.start(t, "one")
	eventually(t, "ready", func() bool { return get(t, url+"/readyz", nil) == http.StatusOK })
	w.traffic(t, map[string]float64{"eu": 20, "us": 80})

	a := <-advice
	if len(a.Moves) != 1 || a.Moves[0].To != "us" || a.Moves[0].Amount <= 0 || a.Term == 0 || a.Cycle == 0 {
		t.Errorf("advice to eu: %+v, want it to give to us", a)
	}
	var eu, us limit.Share
	if err := w.db.QueryRow(t.Context(), `SELECT e.target_share, u.target_share FROM split e, split u WHERE e.region = 'eu' AND u.region = 'us'`).Scan(&eu, &us); err != nil {
		t.Fatal(err)
	}
	if eu >= 400_000 || eu+us != limit.Whole {
		t.Errorf("targets %d and %d, want them on the way to 20/80", eu, us)
	}
	var reason string
	if err := w.db.QueryRow(t.Context(), `SELECT reason FROM split_history LIMIT 1`).Scan(&reason); err != nil || !strings.Contains(reason, "us offers 80/s") {
		t.Errorf("reason %q, %v", reason, err)
	}
	var page struct {
		Items []struct {
			Tenant  string
			Rule    struct{ Capacity int64 }
			Regions []struct {
				Region string
				Target limit.Share
			}
		}
	}
	if code := get(t, url+"/v1/splits?tenant=shop-a&route=create-order", &page); code != http.StatusOK || len(page.Items) != 1 ||
		page.Items[0].Rule.Capacity != 200 || page.Items[0].Regions[0].Target >= 500_000 {
		t.Errorf("splits: %d %+v", code, page)
	}
	stop()
}

func TestChangesAreAnnounced(t *testing.T) {
	w := newWorld(t)
	changed := make(chan *nats.Msg, 16)
	sub, err := w.conn.ChanSubscribe(wire.SubjectChanged, changed)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection goes with the test
	w.start(t, "one")
	last := limit.Revision{}
	next := func() limit.Revision {
		t.Helper()
		select {
		case m := <-changed:
			var c wire.Changed
			if err := wire.Decode(m.Data, &c); err != nil {
				t.Fatal(err)
			}
			return c.Revision
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was announced")
			return last
		}
	}
	last = next()
	w.exec(t, `UPDATE rate_limit_rule SET capacity = 300`)
	if got := next(); !got.Newer(last) {
		t.Errorf("announced %v after %v", got, last)
	}
}

func TestAnotherTakesOver(t *testing.T) {
	w := newWorld(t)
	first, stop := w.start(t, "one")
	leads := func(url string) func() bool {
		return func() bool {
			var s struct{ Leading bool }
			return get(t, url+"/v1/status", &s) == http.StatusOK && s.Leading
		}
	}
	eventually(t, "the first leads", leads(first))
	second, _ := w.start(t, "two")
	eventually(t, "the second is ready", func() bool { return get(t, second+"/readyz", nil) == http.StatusOK })
	if leads(second)() {
		t.Error("both lead")
	}
	stop()
	eventually(t, "the second leads", leads(second))
}

func TestWithoutPostgres(t *testing.T) {
	server := natsenv.Start(t)
	rules := t.TempDir() + "/rules.yaml"
	write(t, rules, "revision: 1\nregions: {eu: 70%, us: 30%}\nrules:\n- {tenant: shop-a, route: create-order, capacity: 200, refill_per_second: 100}\n")
	w := &world{nats: server, conn: server.Conn(t)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Listener: listener, LogOutput: io.Discard, Cycle: time.Second,
			Config: fmt.Appendf(nil, "rules_file: %s\nnats: {urls: [\"%s\"]}\naccess: {anonymous: viewer}\n", rules, server.URL)})
	}()
	w.traffic(t, map[string]float64{"eu": 20, "us": 80})
	url := "http://" + listener.Addr().String()
	eventually(t, "a split", func() bool {
		var page struct {
			Items []struct {
				Regions []struct{ Target limit.Share }
			}
		}
		return get(t, url+"/v1/splits?tenant=shop-a", &page) == http.StatusOK && len(page.Items) == 1 && page.Items[0].Regions[0].Target < 400_000
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
