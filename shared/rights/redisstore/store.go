package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/lua"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// Options of a Store.
type Options struct {
	// Client of the regional Redis, one that never repeats a command by itself.
	Client redis.UniversalClient
	// Peers are the other regions.
	Peers []string
	// LossHorizon: buckets that take longer to fill start full even after a data loss (default 10 min).
	LossHorizon time.Duration
	// Fenced tells that the region's lease is over: nothing is given, lent or accepted then. Nil means never.
	Fenced func() bool
	// Clock replaces Redis's own in the scripts, for tests: a Lua chunk that defines now_us.
	Clock string
}

// Store runs steps of rights in the regional Redis. It is safe for concurrent use, also by many processes on one Redis.
type Store struct {
	client  redis.UniversalClient
	peers   atomic.Pointer[string]
	horizon string
	scripts map[rights.Op]script
	records records
	lost    atomic.Int64
	// generation of the source of the rules.
	generation atomic.Int64
	fenced     func() bool

	mu      sync.Mutex
	indexed map[limit.Key]struct{}
}

type script struct{ source, sha string }

// New makes a store.
func New(o Options) *Store {
	if o.LossHorizon <= 0 {
		o.LossHorizon = 10 * time.Minute
	}
	s := &Store{
		client: o.Client, horizon: strconv.FormatInt(o.LossHorizon.Milliseconds(), 10),
		scripts: map[rights.Op]script{}, indexed: map[limit.Key]struct{}{}, fenced: o.Fenced,
	}
	s.SetPeers(o.Peers)
	_, cluster := o.Client.(*redis.ClusterClient)
	s.records.cluster = cluster
	for op, source := range map[rights.Op]string{
		rights.OpGive: lua.Give, rights.OpLend: lua.Lend, rights.OpApply: lua.Apply, rights.OpAcknowledge: lua.Acknowledge,
		rights.OpLook: lua.Look, rights.OpBegin: lua.Begin, rights.OpVoid: lua.Void, rights.OpLearn: lua.Learn,
		rights.OpActivate: lua.Activate,
	} {
		if o.Clock != "" {
			source = lua.OnClock(o.Clock, source)
		}
		s.scripts[op] = script{source, redis.NewScript(source).Hash()}
	}
	return s
}

// SetLoss records when this Redis last lost its data, by its own clock; the zero time means never.
func (s *Store) SetLoss(at time.Time) {
	if at.IsZero() {
		s.lost.Store(0)
		return
	}
	s.lost.Store(at.UnixMilli())
}

// SetGeneration says which generation of sources the rules come from, as for the store of buckets.
func (s *Store) SetGeneration(n int64) { s.generation.Store(n) }

// SetPeers says which other regions there are, from the next step on.
func (s *Store) SetPeers(peers []string) {
	joined := strings.Join(peers, ",")
	s.peers.Store(&joined)
}

// Task is a step and the limit of its key as this instance knows it.
type Task struct {
	Step  rights.Step
	Limit bucket.Limit
}

// Result of one task. With an error, whether the step was executed is unknown: rows are cumulative, so reading the key and
// sending its row again is always right, and repeating a give or a loan is not.
type Result struct {
	Report rights.Report
	Err    error
}

// Do executes tasks, each atomically, together in one pipeline, in no particular order. It answers task by task.
func (s *Store) Do(ctx context.Context, tasks []Task) []Result {
	results := make([]Result, len(tasks))
	if err := s.index(ctx, tasks); err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	todo := make([]int, len(tasks))
	for i := range tasks {
		todo[i] = i
	}
	todo = s.run(ctx, tasks, todo, results, redis.Pipeliner.EvalSha, script.digest)
	if len(todo) == 0 {
		return results
	}
	// Redis had refused to run these: their scripts were not in its cache. Nothing was executed.
	if s.load(ctx) == nil {
		todo = s.run(ctx, tasks, todo, results, redis.Pipeliner.EvalSha, script.digest)
	}
	// A user without SCRIPT commands sends their text, after which the cache has them.
	s.run(ctx, tasks, todo, results, redis.Pipeliner.Eval, script.text)
	return results
}

// eval is how a script is run, by its digest or its text.
type eval func(pipe redis.Pipeliner, ctx context.Context, script string, keys []string, args ...any) *redis.Cmd

func (s script) digest() string { return s.sha }

func (s script) text() string { return s.source }

// run executes the tasks with the given indices and returns those that Redis had no script for.
func (s *Store) run(ctx context.Context, tasks []Task, todo []int, results []Result, by eval, form func(script) string) (missing []int) {
	if len(todo) == 0 {
		return nil
	}
	pipe := s.client.Pipeline()
	commands := make([]*redis.Cmd, len(todo))
	for k, i := range todo {
		t := &tasks[i]
		name := t.Step.Key.Redis()
		commands[k] = by(pipe, ctx, form(s.scripts[t.Step.Op]), []string{name, s.records.key(name)}, s.arguments(t)...)
	}
	_, _ = pipe.Exec(ctx) // every command carries its own error
	for k, i := range todo {
		reply, err := commands[k].StringSlice()
		switch {
		case err != nil && redis.HasErrorPrefix(err, "NOSCRIPT"):
			missing = append(missing, i)
		case err != nil:
			s.unreached(ctx, err)
			results[i].Err = fmt.Errorf("%s %s: %w", tasks[i].Step.Op, tasks[i].Step.Key, err)
		default:
			results[i].Report, results[i].Err = parseReport(reply, tasks[i].Step.Peer)
		}
	}
	return missing
}

// unreached makes the client of a cluster learn who has taken the slots of a node that does not answer; by itself it would ask once
// a minute. At most one such question is under way.
func (s *Store) unreached(ctx context.Context, err error) {
	var answered redis.Error
	if cluster, ok := s.client.(*redis.ClusterClient); ok && err != nil && !errors.As(err, &answered) {
		cluster.ReloadState(ctx)
	}
}

func (s *Store) load(ctx context.Context) error {
	for op, sc := range s.scripts {
		if err := s.client.ScriptLoad(ctx, sc.source).Err(); err != nil {
			return fmt.Errorf("load script %s: %w", op, err)
		}
	}
	return nil
}

func (s *Store) arguments(t *Task) []any {
	l := t.Limit
	l.Key, l.Cost, l.Owed, l.Ahead = t.Step.Key, 0, 0, 0
	fenced := "0"
	if op := t.Step.Op; s.fenced != nil && op >= rights.OpGive && op <= rights.OpAcknowledge && s.fenced() {
		fenced = "1" // a new incarnation begins and learns while the lease is over; it only does not end before
	}
	args := []any{strconv.FormatInt(s.lost.Load(), 10), s.horizon, fenced, l.Ask(s.generation.Load()), t.Step.Peer, *s.peers.Load()}
	integer := func(vs ...int64) {
		for _, v := range vs {
			args = append(args, strconv.FormatInt(v, 10))
		}
	}
	received := func(r rights.Received) { integer(int64(r.Share), r.Ride, r.Loan, r.Refused) }
	switch st := &t.Step; st.Op {
	case rights.OpGive, rights.OpLend:
		integer(st.Amount)
		args = append(args, strconv.FormatFloat(st.Keep, 'g', 17, 64))
	case rights.OpApply:
		r := &st.Row
		integer(r.Incarnation, r.Receiver, r.Epoch, int64(r.Sent.Share), r.Sent.Ride, r.Sent.Loan)
	case rights.OpAcknowledge:
		a := &st.Ack
		integer(a.Incarnation, a.Receiver, a.Epoch)
		received(a.Received)
	case rights.OpBegin:
		lost := int64(0)
		if st.Lost {
			lost = 1
		}
		integer(st.Number, lost)
	case rights.OpVoid:
		integer(st.Number)
	case rights.OpLearn:
		a := &st.Answer
		integer(a.Incarnation, a.Receiver, a.Epoch, int64(a.Out.Share), a.Out.Ride, a.Out.Loan)
		received(a.In)
		received(a.Acked)
	}
	return args
}
