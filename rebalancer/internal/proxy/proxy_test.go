package proxy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

var key = limit.Key{Tenant: "a", Route: "r"}

// world is one key in three regions, each the machine that ships, joined by a real NATS.
type world struct {
	mu     sync.Mutex
	states map[string]*rights.State
	conn   *nats.Conn
	silent map[string]bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{states: map[string]*rights.State{}, conn: natsenv.Start(t).Conn(t), silent: map[string]bool{}}
	bases := map[string]limit.Share{"ap": 200_000, "eu": 500_000, "us": 300_000}
	for name, base := range bases {
		peers := map[string]int64{}
		for other := range bases {
			if other != name {
				peers[other] = 1
			}
		}
		s := rights.New(bucket.NumbersOf(&limit.Rule{Capacity: 1000, Refill: 100, PeriodSeconds: 1}, base), base/20, 1, time.Now())
		s.Open(peers)
		w.states[name] = &s
	}
	// us has given 100,000 to eu, and ap 50,000 to us.
	w.give(t, "us", "eu", 100_000)
	w.give(t, "ap", "us", 50_000)
	return w
}

func (w *world) give(t *testing.T, from, to string, amount limit.Share) {
	t.Helper()
	now := time.Now()
	if got := w.states[from].Give(now, to, amount, 0); got != amount {
		t.Fatalf("%s gave %d, want %d", from, got, amount)
	}
	row, _ := w.states[from].Row(from, to)
	ack, v := w.states[to].Apply(now, row)
	if v != rights.Applied {
		t.Fatalf("row: %v", v)
	}
	w.states[from].Acknowledge(now, ack)
}

// serve lets a region answer what comes over NATS.
func (w *world) serve(t *testing.T, region string) {
	t.Helper()
	handle := func(m *nats.Msg) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.silent[region] {
			return
		}
		s := w.states[region]
		var v wire.Void
		var tr wire.Transfer
		switch {
		case wire.Decode(m.Data, &v) == nil && m.Subject == wire.SubjectVoid(region, v.Region):
			w.answer(t, region, s, &v)
		case wire.Decode(m.Data, &tr) == nil:
			w.book(t, region, s, &tr)
		}
	}
	for _, subject := range []string{wire.SubjectVoid(region, "*"), wire.SubjectTransfer(region, "*")} {
		sub, err := w.conn.Subscribe(subject, handle)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Unsubscribe() })
	}
}

func (w *world) answer(t *testing.T, region string, s *rights.State, v *wire.Void) {
	out := wire.Answer{Header: wire.Header{Version: wire.Version, Region: region, Instance: region + "-1", Incarnation: s.Incarnation}, To: v.Region, ReceiverIncarnation: v.Incarnation}
	a, ok := s.Void(time.Now(), rights.Void{From: v.Region, To: region, Incarnation: v.Incarnation})
	if !ok {
		out.Known = s.Pair(v.Region).Incarnation
	} else {
		out.Keys = []wire.AnswerKey{{Tenant: key.Tenant, Route: key.Route, Incarnation: s.Incarnation, Epoch: a.Epoch, Base: a.Base,
			Out: [3]int64{int64(a.Out.Share), a.Out.Ride, a.Out.Loan}, In: [4]int64{int64(a.In.Share), a.In.Ride, a.In.Loan, a.In.Refused}}}
	}
	w.send(t, wire.SubjectAnswer(v.Region, region), &out)
}

func (w *world) book(t *testing.T, region string, s *rights.State, tr *wire.Transfer) {
	for _, r := range tr.Rows {
		ack, v := s.Apply(time.Now(), rights.Row{From: tr.Region, To: region, Incarnation: tr.Incarnation, Receiver: tr.ReceiverIncarnation,
			Epoch: r.Epoch, Base: r.Base, Sent: rights.Sent{Share: r.Share, Ride: r.Ride, Loan: r.Loan}})
		if v != rights.Applied {
			t.Errorf("%s does not book the row: %v", region, v)
			return
		}
		w.send(t, wire.SubjectAck(tr.Region, region), &wire.Ack{
			Header: wire.Header{Version: wire.Version, Region: region, Instance: region + "-1", Incarnation: s.Incarnation}, To: tr.Region,
			ReceiverIncarnation: tr.Incarnation, Rows: []wire.AckRow{{Tenant: r.Tenant, Route: r.Route, Epoch: r.Epoch, Share: ack.Received.Share}}})
	}
}

func (w *world) send(t *testing.T, subject string, m wire.Message) {
	data, err := wire.Encode(m)
	if err == nil {
		err = w.conn.Publish(subject, data)
	}
	if err != nil && t.Context().Err() == nil { // a late message may find the test over
		t.Error(err)
	}
}

func (w *world) share(region string) limit.Share {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[region].Share
}

func (w *world) proxy() *Proxy {
	return &Proxy{Options: Options{Conn: w.conn, Instance: "rebalancer", Started: time.Now(), Logger: slog.New(slog.DiscardHandler), Repeat: 20 * time.Millisecond}}
}

var (
	peers = []string{"ap", "eu"}
	lost  = []Key{{Key: key, Base: 300_000, Floor: 15_000, Weights: []float64{1, 3}}}
)

func claim() Claim {
	return Claim{Region: "us", Peers: peers, Keys: lost, Number: time.Now().UnixMilli() | 1}
}

func TestRecoverMintsWhatIsAboveTheFloorOnce(t *testing.T) {
	w := newWorld(t)
	w.serve(t, "ap")
	w.serve(t, "eu")
	before := w.share("us")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	minted, err := w.proxy().Recover(ctx, claim())
	if err != nil {
		t.Fatal(err)
	}
	if got := minted[key]; len(got) != 2 || got[0]+got[1] != before-15_000 || got[1] < 2*got[0] {
		t.Errorf("minted %v, want %d above the floor, three parts of four for eu", got, before-15_000)
	}
	if sum := w.share("ap") + w.share("eu") + 15_000; sum != limit.Whole {
		t.Errorf("shares with the floor add up to %d", sum)
	}
	again, err := w.proxy().Recover(ctx, claim())
	if err != nil || again[key][0]+again[key][1] != 0 {
		t.Errorf("a second time: %v, %v; want nothing more", again, err)
	}
	// The dead comes back: it learns from its peers and holds its floor.
	us, now := w.states["us"], time.Now()
	number := time.Now().Add(time.Hour).UnixMilli()
	us.Begin(now, number, true)
	for _, peer := range peers {
		a, ok := w.states[peer].Void(now, rights.Void{From: "us", To: peer, Incarnation: number})
		if !ok {
			t.Fatalf("%s refuses the number of a region that comes back", peer)
		}
		us.Learn(a)
	}
	if !us.Activate(now, peers) || us.Share != 15_000 {
		t.Errorf("comes back with %d, want its floor of 15000", us.Share)
	}
}

func TestNothingIsMintedWhileAPeerIsSilent(t *testing.T) {
	w := newWorld(t)
	w.serve(t, "ap")
	w.serve(t, "eu")
	w.silent["ap"] = true
	eu := w.share("eu")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := w.proxy().Recover(ctx, claim()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if got := w.share("eu"); got != eu {
		t.Errorf("eu got %d although ap has not answered", got-eu)
	}
}

// record is a ledger with one dead region, and a recoverer that mints what it is told.
type record struct {
	mirror    ledger.Mirror
	committed []ledger.Decision
	asked     int
	keys      []Key
	claims    []Claim
	mu        sync.Mutex
	leases    map[string]ledger.RegionLease
	recover   func(ctx context.Context, c Claim) (map[limit.Key][]limit.Share, error)
}

func (r *record) RegionLeases(context.Context) (map[string]ledger.RegionLease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.leases), nil
}

func (r *record) NoteLease(_ context.Context, _ int64, region string, fences bool, floor limit.Share) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.leases[region]
	l.Fences, l.Floor = fences, max(l.Floor, floor)
	r.leases[region] = l
	return nil
}

func (r *record) TakeIncarnation(_ context.Context, _ int64, region string, above int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.leases[region]
	l.Incarnation = max(l.Incarnation, above, time.Now().UnixMilli()) + 1 | 1
	r.leases[region] = l
	return l.Incarnation, nil
}

func (r *record) Refresh(_ context.Context, m *ledger.Mirror) error {
	*m = r.mirror
	m.Splits = maps.Clone(r.mirror.Splits)
	return nil
}

func (r *record) Commit(_ context.Context, d ledger.Decision) error {
	r.committed = append(r.committed, d)
	return nil
}

func (r *record) Recover(ctx context.Context, c Claim) (map[limit.Key][]limit.Share, error) {
	r.mu.Lock()
	r.asked++
	r.keys, r.claims = c.Keys, append(r.claims, c)
	r.mu.Unlock()
	if r.recover != nil {
		return r.recover(ctx, c)
	}
	return map[limit.Key][]limit.Share{key: {100_000, 185_000}}, nil
}

func TestKeeperRecoversADeadRegionOnce(t *testing.T) {
	base := func(s limit.Share) *limit.Share { return &s }
	r := &record{leases: map[string]ledger.RegionLease{}, mirror: ledger.Mirror{
		Regions: []ledger.Region{{Name: "ap", State: ledger.RegionActive}, {Name: "eu", State: ledger.RegionDraining}, {Name: "us", State: ledger.RegionDead}},
		Splits: map[limit.Key]ledger.Split{
			key:                               {Key: key, Regions: []ledger.RegionShare{{Region: "ap", Target: 100_000, Base: base(200_000)}, {Region: "eu", Target: 600_000, Base: base(500_000)}, {Region: "us", Target: 300_000, Base: base(300_000)}}},
			{Tenant: "never", Route: "moved"}: {Regions: []ledger.RegionShare{{Region: "us", Target: 1_000_000}}}}}}
	forgotten := []string{}
	k := &Keeper{Ledger: r, Proxy: r, Control: func() string { return "" }, Voter: NewVoter(VoterOptions{Logger: slog.New(slog.DiscardHandler), Terms: lease.DefaultTerms(), Term: func() int64 { return 0 }}), Floor: func() float64 { return 0.05 }, Forget: func(region string) { forgotten = append(forgotten, region) },
		Holder: "x", Logger: slog.New(slog.DiscardHandler)}
	var m ledger.Mirror
	done := map[string]bool{}
	for range 3 {
		if err := k.look(t.Context(), 7, &m, done); err != nil {
			t.Fatal(err)
		}
	}
	if r.asked != 1 || len(r.keys) != 1 || r.keys[0].Base != 300_000 || r.keys[0].Floor != 15_000 || !slices.Equal(r.keys[0].Weights, []float64{100_000, 600_000}) {
		t.Errorf("asked %d times with %+v", r.asked, r.keys)
	}
	d := r.committed[0]
	if d.Term != 7 || !slices.Equal(d.Regions, []string{"us", "ap", "eu"}) || !slices.Equal(d.Changes[0].After, []limit.Share{15_000, 200_000, 785_000}) {
		t.Errorf("committed %+v", d)
	}
	if !slices.Equal(forgotten, []string{"us"}) {
		t.Errorf("forgotten %v", forgotten)
	}
	r.mirror.Regions[0].State = ledger.RegionDead
	if err := k.look(t.Context(), 7, &m, done); err == nil {
		t.Error("two regions dead at once were recovered")
	}
}
