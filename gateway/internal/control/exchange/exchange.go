package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/agent"
	"partidor.dev/partidor/shared/rights/lease"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

// Rules is where the rules and the regions come from; a *snapshot.Holder is one. Load is called often and must be cheap.
type Rules interface {
	Load() *snapshot.Snapshot
}

// Store runs steps in the regional Redis; a *redisstore.Store is one.
type Store interface {
	Do(ctx context.Context, tasks []redisstore.Task) []redisstore.Result
	Read(ctx context.Context, keys []limit.Key) ([]rights.State, []error)
	Moved(ctx context.Context, visit func([]limit.Key) error) error
	SetPeers(peers []string)
	Forget()
	Record(ctx context.Context) (redisstore.Record, error)
	BeginRegion(ctx context.Context, number int64, run string) (redisstore.Record, error)
	ActivateRegion(ctx context.Context, number int64, answered map[string]int64) (redisstore.Record, error)
	VoidPeer(ctx context.Context, peer string, number int64) (redisstore.Record, error)
	Vote(ctx context.Context, peer string, number int64, fences bool) (redisstore.Record, error)
	Agree(ctx context.Context, peer string, number int64, silence time.Duration) (redisstore.Record, error)
	RunID(ctx context.Context) (string, error)
}

// Options of an Exchange. Meter and Tracer may come from a no-op provider; everything without a comment is required.
type Options struct {
	Region, Instance string
	Conn             *nats.Conn
	Store            Store
	Rules            Rules
	// Heat holds the keys near their limit as this instance sees them; nil for none.
	Heat *Heat
	// Credited is told at once of keys that another region is giving something; nil for nobody. It must not wait.
	Credited func(now time.Time, keys ...limit.Key)
	// Leads tells whether this instance drives for the region now. Nil means always.
	Leads func() bool
	// Policy of the agent, asked for at every tick; nil means agent.DefaultPolicy.
	Policy func() agent.Policy
	// MarkMoved is told of keys that have moved and that the rules do not yet know to have, or not with this floor. Nil means that
	// nobody wants to know.
	MarkMoved func(keys map[limit.Key]Recorded)
	// Guard holds the region's lease for this instance; nil where there is none.
	Guard *lease.Guard
	// WarmUp is how long after its start an instance follows no advice (default 5 s): without having heard what the region's
	// instances are offered it would give away what they need.
	WarmUp time.Duration
	// RoundTrip between regions, about (default 80 ms): it tells which limits are too small for loans ahead.
	RoundTrip time.Duration
	Logger    *slog.Logger
	Tracer    trace.Tracer
	Meter     metric.Meter
}

const (
	// tick is how often the agent lets time pass and hot keys are told.
	tick = 50 * time.Millisecond
	// sweepEvery is how often all moved keys are read for rows that somebody else left unacknowledged.
	sweepEvery = time.Minute
	// inbox bounds the messages that wait for the loop; beyond it they are dropped and counted.
	inbox = 8192
	// stepBatch bounds one pipeline of steps, stepTimeout its time.
	stepBatch   = 256
	stepTimeout = 2 * time.Second
)

// Exchange moves rights for one instance. Run it once.
type Exchange struct {
	o       Options
	metrics *metrics
	started time.Time
	inbox   chan any
	work    chan []redisstore.Task

	jobs     sync.WaitGroup
	sweeping atomic.Bool

	// Of the loop alone.
	agent     *agent.Agent
	regionsAt limit.Revision
	peers     []string
	demand    *demand
	traces    traces
	sequence  uint64
	swept     time.Time
	pending   []redisstore.Task
	busy      int

	// news are keys found to have moved that the rules do not know of.
	news map[limit.Key]Recorded

	// The region's life, as last seen in its record, and what is being re-learned: of the whole region, of single keys.
	self                int64
	phase               rights.Phase
	runSeen             string
	last                int64 // the highest incarnation taken or heard of
	region              *recovery
	keys                map[int64]*recovery
	answering           map[string]bool
	watched, probed     time.Time
	watching, beginning bool

	// Of leases: what other regions call, which of them are being answered, and the region's record as last seen.
	ear       *lease.Ear
	voting    map[lease.Life]bool
	record    redisstore.Record
	renewed   time.Time
	wasFenced bool
}

// New checks the options and prepares an Exchange.
func New(o Options) (*Exchange, error) {
	if o.Region == "" || o.Instance == "" || o.Conn == nil || o.Store == nil || o.Rules == nil || o.Logger == nil || o.Tracer == nil || o.Meter == nil {
		return nil, errors.New("exchange: region, instance, connection, store, rules, logger, tracer and meter are required")
	}
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	if o.Policy == nil {
		o.Policy = agent.DefaultPolicy
	}
	if o.WarmUp <= 0 {
		o.WarmUp = 5 * time.Second
	}
	if o.RoundTrip <= 0 {
		o.RoundTrip = 80 * time.Millisecond
	}
	terms := lease.DefaultTerms()
	if o.Guard != nil {
		terms = o.Guard.Terms()
	}
	m, err := newMetrics(o.Meter)
	if err != nil {
		return nil, fmt.Errorf("exchange: %w", err)
	}
	return &Exchange{
		o: o, metrics: m, started: time.Now(), inbox: make(chan any, inbox),
		work: make(chan []redisstore.Task, workers), demand: newDemand(),
		keys: map[int64]*recovery{}, answering: map[string]bool{},
		news: map[limit.Key]Recorded{},
		ear:  lease.NewEar(lease.Clock(), terms), voting: map[lease.Life]bool{},
	}, nil
}

// Run hears and acts until ctx ends, then waits for the steps under way. What is unacknowledged then is sent again by
// whoever drives next.
func (x *Exchange) Run(ctx context.Context) error {
	stop, err := x.subscribe()
	if err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	defer stop()
	wait := x.startWorkers(ctx)
	defer wait()
	defer x.jobs.Wait()
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-x.inbox:
			x.handle(ctx, m)
			for range len(x.inbox) { // what has come meanwhile goes into the same pipeline
				x.handle(ctx, <-x.inbox)
			}
		case now := <-timer.C:
			x.tellHot(ctx)
			x.renew(ctx, now)
			x.lead(ctx, now)
			x.tellMoved()
		}
		x.act(ctx)
	}
}

// lead takes or leaves office, and lets the agent's time pass.
func (x *Exchange) lead(ctx context.Context, now time.Time) {
	if now.Sub(x.swept) > sweepEvery && x.sweeping.CompareAndSwap(false, true) {
		x.swept = now
		x.jobs.Go(func() {
			defer x.sweeping.Store(false)
			x.sweep(ctx)
		})
	}
	if !x.o.Leads() || x.fenced() {
		if x.agent != nil {
			x.o.Logger.InfoContext(ctx, "this instance no longer drives the transfers of the region", "fenced", x.fenced())
			x.agent, x.region = nil, nil
			clear(x.keys)
		}
		return
	}
	s := x.o.Rules.Load()
	if len(s.Regions()) == 0 {
		return // the rules have not been read yet: nobody knows who else must be asked before this region may live
	}
	if x.agent == nil || x.regionsAt != s.RegionsRevision() || !samePeers(x.peers, s, x.o.Region) {
		x.takeOffice(ctx, s)
	}
	x.watch(ctx, now)
	x.live(ctx, now)
	x.agent.SetPolicy(x.o.Policy())
	x.demand.observe(now, x.agent)
	x.agent.Tick(now)
	x.metrics.agent(ctx, x.agent)
}

func (x *Exchange) takeOffice(ctx context.Context, s *snapshot.Snapshot) {
	x.regionsAt, x.peers = s.RegionsRevision(), peersOf(s, x.o.Region)
	x.o.Store.SetPeers(x.peers)
	x.agent = agent.New(agent.Options{
		Region: x.o.Region, Peers: x.peers, Policy: x.o.Policy(), RoundTrip: x.o.RoundTrip, Rule: x.rule,
	})
	x.swept, x.watched = time.Time{}, time.Time{}
	x.region = nil
	clear(x.keys)
	x.o.Logger.InfoContext(ctx, "this instance drives the transfers of the region", "peers", x.peers)
}

func peersOf(s *snapshot.Snapshot, own string) []string {
	var peers []string
	for _, r := range s.Regions() {
		if r.Name != own {
			peers = append(peers, r.Name)
		}
	}
	return peers
}

func samePeers(peers []string, s *snapshot.Snapshot, own string) bool {
	n := 0
	for _, r := range s.Regions() {
		if r.Name == own {
			continue
		}
		if n >= len(peers) || peers[n] != r.Name {
			return false
		}
		n++
	}
	return n == len(peers)
}

// sweep reads every moved key and hands them to the loop, so that the agent sends what is unacknowledged.
func (x *Exchange) sweep(ctx context.Context) {
	err := x.o.Store.Moved(ctx, func(keys []limit.Key) error {
		states, errs := x.o.Store.Read(ctx, keys)
		found := restored{}
		for i := range keys {
			switch {
			case errors.Is(errs[i], redisstore.ErrUnreadable), errs[i] == nil && !states[i].Moved && x.moved(keys[i]):
				found.lost = append(found.lost, keys[i])
			case errs[i] != nil:
				return errs[i]
			case states[i].Moved:
				found.keys = append(found.keys, keys[i])
				found.states = append(found.states, states[i])
			}
		}
		select {
		case x.inbox <- found:
		case <-ctx.Done():
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		x.o.Logger.WarnContext(ctx, "moved keys could not be read; rows left by others wait", "error", err)
	}
}

// restored is what a sweep found.
type restored struct {
	keys   []limit.Key
	states []rights.State
	// lost are keys that have moved and whose rights are missing or unreadable.
	lost []limit.Key
}

// limit is a key's limit as the snapshot has it.
func (x *Exchange) limit(key limit.Key) (bucket.Limit, bool) {
	s := x.o.Rules.Load()
	m := s.Lookup(key.Tenant, key.Route)
	if m.Rule == nil {
		return bucket.Limit{}, false
	}
	return bucket.Limit{Key: key, Rule: m.Rule, Revision: m.Revision, Base: m.Base, Late: s.Late(&m, time.Now()), Floor: m.Floor, Moved: m.Moved}, true
}

func (x *Exchange) rule(key limit.Key) *limit.Rule {
	return x.o.Rules.Load().Lookup(key.Tenant, key.Route).Rule
}

func (x *Exchange) header(incarnation int64) wire.Header {
	x.sequence++
	return wire.Header{
		Region: x.o.Region, Instance: x.o.Instance, Incarnation: incarnation, Sequence: x.sequence, Started: x.started.UnixMilli(),
	}
}
