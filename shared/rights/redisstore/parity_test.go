package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"partidor.dev/partidor/lua"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/testenv"
)

// testClock makes the shipped scripts run on a clock that the test sets.
const testClock = `
local function now_us() return tonumber(redis.call('GET', 'test:now')) end
`

const began = 1_760_256_000_123_456

var (
	key     = limit.Key{Tenant: "shop-a", Route: "create-order"}
	regions = []string{"ap", "eu", "us"}
)

// site is one region twice: in a real Redis, by the scripts, and as a State.
type site struct {
	name   string
	client redis.UniversalClient
	store  *Store
	takes  *bucket.Redis
	state  rights.State
	peers  map[string]int64
}

func newSite(tb testing.TB, name string, peers []string) *site {
	tb.Helper()
	client, err := redisconn.New(redisconn.Options{Addrs: []string{testenv.StartRedis(tb).Addr}, OpTimeout: 20 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	s := &site{name: name, client: client, peers: map[string]int64{}}
	for _, p := range peers {
		s.peers[p] = 1
	}
	s.store = New(Options{Client: client, Peers: peers, Clock: testClock})
	s.takes = bucket.NewRedis(bucket.Options{Client: client, Script: lua.OnClock(testClock, lua.Take), CallTimeout: 20 * time.Second})
	tb.Cleanup(s.takes.Close)
	return s
}

// planet is all sites, and a network that keeps every message for ever: it delivers any of them at any time, again and again.
type planet struct {
	t        *rapid.T
	kinds    int // of steps: 6 without rule changes, 7 with
	sites    []*site
	now      int64
	rule     limit.Rule
	base     []limit.Share
	revision int64
	rows     []rights.Row
	acks     []rights.Ack
	voids    []rights.Void
	answers  []rights.Answer
	number   int64 // the highest incarnation given out
	// world is one virtual bucket of the whole limit, fed with every admission everywhere, while the rule stays the same.
	world bucket.Level
}

func (p *planet) limit(i int) bucket.Limit {
	r := p.rule
	return bucket.Limit{Key: key, Rule: &r, Revision: limit.Revision{Epoch: 1, Number: p.revision}, Base: p.base[i], Floor: p.base[i] / 20}
}

func (p *planet) advance(us int64) {
	p.now += us
	for _, s := range p.sites {
		if err := s.client.Set(context.Background(), "test:now", p.now, 0).Err(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// do executes a step in Redis and on the State and compares everything.
func (p *planet) do(i int, step rights.Step) rights.Report {
	s, l := p.sites[i], p.limit(i)
	step.Key = key
	got := s.store.Do(context.Background(), []Task{{Step: step, Limit: l}})[0]
	if got.Err != nil {
		p.t.Fatal(got.Err)
	}
	want := s.state.Do(rights.Env{
		Now: time.UnixMicro(p.now), Peers: s.peers, Numbers: bucket.NumbersOf(l.Rule, l.Base), Revision: l.Revision,
	}, step)
	if diff := cmp.Diff(want, got.Report); diff != "" {
		p.t.Fatalf("%s %s: the script differs from the state machine (-want +got):\n%s", s.name, step.Op, diff)
	}
	return got.Report
}

func (p *planet) other(i int, label string) int {
	return (i + rapid.IntRange(1, len(p.sites)-1).Draw(p.t, label)) % len(p.sites)
}

func (p *planet) step() {
	i := rapid.IntRange(0, len(p.sites)-1).Draw(p.t, "region")
	s := p.sites[i]
	switch rapid.IntRange(-1, p.kinds).Draw(p.t, "step") {
	case -1:
		p.lose(i)
	case 0:
		p.advance(rapid.Int64Range(0, 3_000_000).Draw(p.t, "elapsed"))
	case 1, 2:
		p.take(i, rapid.Int64Range(1, 30).Draw(p.t, "cost"))
	case 3:
		to := p.sites[p.other(i, "to")].name
		amount := rapid.Int64Range(0, 400_000).Draw(p.t, "share")
		r := p.do(i, rights.Step{Op: rights.OpGive, Peer: to, Amount: amount, Keep: float64(rapid.Int64Range(0, 100_000).Draw(p.t, "keep"))})
		p.sent(s, r)
	case 4:
		to := p.sites[p.other(i, "to")].name
		r := p.do(i, rights.Step{Op: rights.OpLend, Peer: to, Amount: rapid.Int64Range(0, 60).Draw(p.t, "loan"), Keep: rapid.Float64Range(0, 20).Draw(p.t, "keep")})
		p.sent(s, r)
	case 5, 6:
		p.deliver()
	case 7:
		p.revision++
		p.rule.Capacity = rapid.Int64Range(1, 300).Draw(p.t, "capacity")
		p.rule.Refill = rapid.Int64Range(1, 200).Draw(p.t, "refill")
	}
}

// sent puts the row that a step left behind into the network. A region that is not active sends nothing.
func (p *planet) sent(s *site, r rights.Report) {
	if r.Phase == rights.Active {
		p.rows = append(p.rows, r.Row(s.name))
	}
}

// lose takes a region's key away, unless another region has not recovered yet, and begins a new incarnation.
func (p *planet) lose(i int) {
	for _, s := range p.sites {
		if s.state.Phase != rights.Active {
			return
		}
	}
	s := p.sites[i]
	if !s.state.Moved {
		return
	}
	if err := s.client.Del(context.Background(), key.Redis()).Err(); err != nil {
		p.t.Fatal(err)
	}
	l := p.limit(i)
	s.state = rights.State{
		Numbers: bucket.NumbersOf(l.Rule, l.Base), Revision: l.Revision, Base: s.state.Base, Floor: s.state.Floor,
		Level: bucket.Level{At: p.now},
	}
	p.number++
	if r := p.do(i, rights.Step{Op: rights.OpBegin, Number: p.number, Lost: true}); r.Verdict != rights.Applied {
		p.t.Fatalf("begin: %v", r.Verdict)
	}
	for _, o := range p.sites {
		if o != s {
			p.voids = append(p.voids, rights.Void{From: s.name, To: o.name, Incarnation: p.number})
		}
	}
}

func (p *planet) deliverVoid(v rights.Void) {
	to := p.at(v.To)
	r := p.do(to, rights.Step{Op: rights.OpVoid, Peer: v.From, Number: v.Incarnation})
	if r.Verdict == rights.Applied {
		p.answers = append(p.answers, r.Answer(v.To))
	}
}

func (p *planet) deliverAnswer(a rights.Answer) {
	to := p.at(a.To)
	p.do(to, rights.Step{Op: rights.OpLearn, Peer: a.From, Answer: a})
	p.do(to, rights.Step{Op: rights.OpActivate, Peer: a.From})
}

// recover completes re-learning: every void that counts is delivered, and every answer.
func (p *planet) recover() {
	for _, v := range p.voids {
		if v.Incarnation == p.number {
			p.deliverVoid(v)
		}
	}
	for _, a := range p.answers {
		if a.Receiver == p.number {
			p.deliverAnswer(a)
		}
	}
	for _, s := range p.sites {
		if s.state.Phase != rights.Active {
			p.t.Fatalf("%s is %v although everybody has answered", s.name, s.state.Phase)
		}
	}
}

func (p *planet) deliver() {
	switch rapid.IntRange(0, 3).Draw(p.t, "kind") {
	case 0:
		if len(p.voids) > 0 {
			p.deliverVoid(rapid.SampledFrom(p.voids).Draw(p.t, "void"))
			return
		}
	case 1:
		if len(p.answers) > 0 {
			p.deliverAnswer(rapid.SampledFrom(p.answers).Draw(p.t, "answer"))
			return
		}
	}
	if len(p.rows) > 0 && rapid.Bool().Draw(p.t, "a row") {
		p.deliverRow(rapid.SampledFrom(p.rows).Draw(p.t, "row"))
	} else if len(p.acks) > 0 {
		ack := rapid.SampledFrom(p.acks).Draw(p.t, "ack")
		p.do(p.at(ack.To), rights.Step{Op: rights.OpAcknowledge, Peer: ack.From, Ack: ack})
	}
}

func (p *planet) deliverRow(row rights.Row) rights.Ack {
	r := p.do(p.at(row.To), rights.Step{Op: rights.OpApply, Peer: row.From, Row: row})
	ack := r.Ack(row.To)
	if r.Verdict == rights.Applied {
		p.acks = append(p.acks, ack)
	}
	return ack
}

func (p *planet) at(region string) int {
	for i, s := range p.sites {
		if s.name == region {
			return i
		}
	}
	panic(region)
}

// take charges the bucket by the script of the request path and by the machine.
func (p *planet) take(i int, cost int64) {
	s, l := p.sites[i], p.limit(i)
	l.Cost, l.Moved = cost, s.state.Moved
	d, err := s.takes.Take(context.Background(), []bucket.Limit{l})
	if err != nil {
		p.t.Fatal(err)
	}
	next := s.state.Clone()
	next.Adopt(time.UnixMicro(p.now), bucket.NumbersOf(l.Rule, l.Base), l.Revision)
	if !next.Moved {
		next.Share, next.Base, next.Floor = l.Base, l.Base, l.Floor
	}
	allowed := cost <= next.Numbers.Capacity && next.Take(time.UnixMicro(p.now), cost)
	if allowed != (d.Outcome == limit.Allowed) {
		p.t.Fatalf("%s take %d: script %v with %g tokens, machine %v with %g", s.name, cost, d.Outcome, d.Tokens, allowed, next.Tokens)
	}
	if allowed {
		s.state = next
		p.admit(cost)
	} else if l.Revision.Newer(s.state.Revision) {
		s.state = next // a refusal remembers a newer rule
	}
}

// admit feeds the virtual bucket: what is admitted anywhere must fit into one bucket of the whole limit.
func (p *planet) admit(cost int64) {
	if p.revision > 1 {
		return
	}
	numbers := bucket.NumbersOf(&p.rule, limit.Whole)
	slice := numbers.Slice(bucket.Rights{}, false)
	p.world = slice.Refill(p.world, p.now)
	if p.world.Tokens -= float64(cost); p.world.Tokens < -1e-6 {
		p.t.Fatalf("admitted %g more than the limit", -p.world.Tokens)
	}
}

// settle delivers everything until nothing is pending and then adds up the shares.
func (p *planet) settle() {
	p.recover()
	for range 3 {
		for i, s := range p.sites {
			states, errs := s.store.Read(context.Background(), []limit.Key{key})
			if errs[0] != nil {
				p.t.Fatal(errs[0])
			}
			for _, pair := range states[0].Pairs {
				row, ok := states[0].Row(s.name, pair.Region)
				if !ok {
					p.t.Fatalf("%s may not send", s.name)
				}
				ack := p.deliverRow(row)
				p.do(i, rights.Step{Op: rights.OpAcknowledge, Peer: pair.Region, Ack: ack})
			}
		}
	}
	var sum limit.Share
	moved := false
	for i, s := range p.sites {
		states, _ := s.store.Read(context.Background(), []limit.Key{key})
		if !states[0].Moved {
			sum += p.base[i]
			continue
		}
		moved = true
		sum += states[0].Share
		if states[0].Held() != 0 {
			p.t.Fatalf("%s still holds %d", s.name, states[0].Held())
		}
		if ttl := s.client.TTL(context.Background(), key.Redis()).Val(); ttl != -1 {
			p.t.Fatalf("%s: a moved key has TTL %v", s.name, ttl)
		}
	}
	if sum != limit.Whole {
		p.t.Fatalf("shares add up to %d (moved: %v)", sum, moved)
	}
}

// TestScriptsEqualTheMachine runs random moves, loans, takes and rule changes between two or three regions over a hostile
// network, in real Redis servers and on States, and wants every reply equal to the last bit and every share accounted for.
func TestScriptsEqualTheMachine(t *testing.T) {
	var sites []*site
	for i, r := range regions {
		var peers []string
		for j, q := range regions {
			if j != i {
				peers = append(peers, q)
			}
		}
		sites = append(sites, newSite(t, r, peers))
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := &planet{t: rt, kinds: rapid.IntRange(6, 7).Draw(rt, "kinds"), sites: sites, now: began, number: 1, base: []limit.Share{200_000, 500_000, 300_000}, revision: 1}
		p.rule = limit.Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
		p.world = bucket.Level{Tokens: 200, At: began}
		for i, s := range sites {
			if err := s.client.FlushAll(context.Background()).Err(); err != nil {
				rt.Fatal(err)
			}
			s.store.Forget()
			record := []any{"self", 1}
			for _, o := range sites {
				if o != s {
					record = append(record, "peer:"+o.name, 1)
				}
			}
			if err := s.client.HSet(context.Background(), recordKey, record...).Err(); err != nil {
				rt.Fatal(err)
			}
			l := p.limit(i)
			s.state = rights.New(bucket.NumbersOf(l.Rule, l.Base), l.Floor, 1, time.UnixMicro(began))
			s.state.Revision = l.Revision
		}
		p.advance(0)
		for i := range sites {
			p.take(i, 1) // from here on every bucket is there
		}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			p.step()
		}
		p.settle()
	})
}
