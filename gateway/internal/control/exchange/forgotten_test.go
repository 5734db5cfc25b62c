package exchange

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/wire"
)

// offered says to each region's agent that it is offered something of the key, so that it looks at it.
func offered(t *testing.T, elapsed int64, sites ...*site) {
	t.Helper()
	for _, s := range sites {
		s.say(t, wire.SubjectUsage(s.name), &wire.Usage{
			Header: wire.Header{Region: s.name, Instance: s.name + "-9", Started: 1, Sequence: uint64(elapsed)}, ElapsedMillis: 1000 * elapsed,
			Keys: []wire.KeyUsage{{Tenant: key.Tenant, Route: key.Route, Admitted: uint64(10 * elapsed), Refused: uint64(elapsed)}},
		})
	}
}

// settled waits until the key is active everywhere with nothing in flight, and gives each region's state. Meanwhile the shares in
// force must never exceed the whole.
func settled(t *testing.T, life func(*site) int64, sites ...*site) []rights.State {
	t.Helper()
	var states []rights.State
	elapsed := int64(100)
	await(t, "all regions know their share again", func() bool {
		elapsed++
		offered(t, elapsed, sites...)
		states = states[:0]
		sum, done := limit.Share(0), true
		for _, s := range sites {
			list, errs := s.store.Read(context.Background(), []limit.Key{key})
			if errs[0] != nil {
				return false
			}
			st := list[0]
			if !st.Moved {
				return false
			}
			states = append(states, st)
			sum += st.Share
			done = done && st.Phase == rights.Active && st.Incarnation > life(s)
			for i := range st.Pairs {
				done = done && !st.Pairs[i].Pending()
			}
		}
		if sum > limit.Whole {
			t.Fatalf("shares in force add up to %d: %+v", sum, states)
		}
		return done && sum == limit.Whole
	})
	return states
}

func lives(t *testing.T, sites ...*site) func(*site) int64 {
	t.Helper()
	before := map[*site]int64{}
	for _, s := range sites {
		before[s] = s.state(t, key).Incarnation
	}
	return func(s *site) int64 { return before[s] }
}

// voids counts how often a region asks.
func voids(t *testing.T, from, to *site) *atomic.Int64 {
	t.Helper()
	n := new(atomic.Int64)
	sub, err := from.conn.Subscribe(wire.SubjectVoid(to.name, from.name), func(m *nats.Msg) {
		v := new(wire.Void)
		if wire.Decode(m.Data, v) == nil && !v.Probe {
			n.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	return n
}

// TestBothForgetAKey: both regions lose the rights of a key that has moved. Nobody knows any more what lies between them; the
// first of them decides, and they ask each other a few times instead of for ever.
func TestBothForgetAKey(t *testing.T) {
	eu, us := moved(t)
	for _, s := range []*site{eu, us} {
		await(t, "the rules know that the key has moved", func() bool { return s.rules.Load().Lookup(key.Tenant, key.Route).Moved })
	}
	life := lives(t, eu, us)
	asked := voids(t, us, eu)
	for _, s := range []*site{eu, us} {
		if err := s.client.Del(context.Background(), key.Redis()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	states := settled(t, life, eu, us)
	if states[0].Share != 700_000 || states[1].Share != 300_000 {
		t.Errorf("decided on %d and %d; with nobody else they have their base shares", states[0].Share, states[1].Share)
	}
	for i := range states {
		if refill := time.Since(began).Seconds()/100 + 0.01; states[i].Tokens > refill {
			t.Errorf("region %d came back with %g tokens", i, states[i].Tokens)
		}
	}
	if most := 3 + int64(time.Since(began)/askLifeEvery); asked.Load() > most {
		t.Errorf("us has asked %d times in %v", asked.Load(), time.Since(began))
	}
	cycle := int64(100)
	await(t, "shares move again", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 700_000, 500_000)})
		return us.state(t, key).Share == 500_000
	})
}

// TestBothForgetEverything: both Redis servers lose all their data.
func TestBothForgetEverything(t *testing.T) {
	eu, us := moved(t)
	for _, s := range []*site{eu, us} {
		await(t, "the rules know that the key has moved", func() bool { return s.rules.Load().Lookup(key.Tenant, key.Route).Moved })
	}
	life := lives(t, eu, us)
	for _, s := range []*site{eu, us} {
		if err := s.client.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	states := settled(t, life, eu, us)
	if states[0].Share != 700_000 || states[1].Share != 300_000 {
		t.Errorf("decided on %d and %d", states[0].Share, states[1].Share)
	}
	eu.alive(t)
	us.alive(t)
}

// TestTwoOfThreeForget: eu and us lose all their data, ap remembers its dealings with each. What us had given ap it had from eu, so
// what lies between eu and us cannot be nothing: us would be left with less than its floor.
func TestTwoOfThreeForget(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"ap", 100_000}, regionShare{"eu", 700_000}, regionShare{"us", 200_000})
	ap, eu, us := sites[0], sites[1], sites[2]
	link(t, ap, eu, 0.1, 0.1, 10*time.Millisecond)
	link(t, ap, us, 0.1, 0.1, 10*time.Millisecond)
	link(t, eu, us, 0.1, 0.1, 10*time.Millisecond)
	for _, s := range sites {
		s.start(t, s.name+"-1", nil)
	}
	for _, s := range sites {
		s.alive(t)
	}
	cycle := int64(0)
	give := func(from, to *site, at, target limit.Share) {
		t.Helper()
		want := to.share(t) + at - target
		await(t, from.name+" has given "+to.name+" share", func() bool {
			if from.share(t) > target {
				cycle++
				advise(t, from, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move(to.name, at, target)})
			}
			giver := from.state(t, key)
			return to.share(t) == want && !giver.Pair(to.name).Pending()
		})
	}
	give(eu, us, 700_000, 100_000) // us: 800,000
	give(us, ap, 800_000, 50_000)  // ap: 850,000
	life := lives(t, eu, us)
	for _, s := range []*site{eu, us} {
		if err := s.client.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	states := settled(t, func(s *site) int64 {
		if s == ap {
			return 0
		}
		return life(s)
	}, ap, eu, us)
	if a, e, u := states[0].Share, states[1].Share, states[2].Share; a != 850_000 || e != 140_000 || u != 10_000 {
		t.Errorf("ap has %d, eu %d, us %d; us should have its floor of 10000 and eu the rest of what ap has not", a, e, u)
	}
}

// share is what the region has of the key in force.
func (s *site) share(t *testing.T) limit.Share {
	t.Helper()
	if st := s.state(t, key); st.Moved {
		return st.Share
	}
	return s.rules.Load().Base()
}

// TestTakeOverWhileRelearning: the instance that has begun to re-learn a key dies before its peer answers. The next one goes on.
func TestTakeOverWhileRelearning(t *testing.T) {
	rule := limit.Rule{Capacity: 200, Refill: 1, PeriodSeconds: 100, Revision: limit.Revision{Epoch: 1, Number: 1}}
	sites := newSites(t, rule, regionShare{"eu", 700_000}, regionShare{"us", 300_000})
	eu, us := sites[0], sites[1]
	cut := link(t, eu, us, 0, 0, time.Millisecond)
	eu.start(t, "eu-1", nil)
	stop := us.start(t, "us-1", nil)
	eu.alive(t)
	us.alive(t)
	cycle := int64(0)
	await(t, "share at 20/80", func() bool {
		cycle++
		advise(t, eu, context.Background(), wire.Advice{Term: 1, Cycle: cycle, Moves: move("us", 700_000, 200_000)})
		return us.share(t) == 800_000 && us.rules.Load().Lookup(key.Tenant, key.Route).Moved
	})
	cut()
	if err := us.client.Del(context.Background(), key.Redis()).Err(); err != nil {
		t.Fatal(err)
	}
	elapsed := int64(0)
	await(t, "us has begun to re-learn", func() bool {
		elapsed++
		offered(t, elapsed, us)
		s := us.state(t, key)
		return s.Moved && s.Phase == rights.Relearning && s.Share == s.Floor
	})
	stop()
	link(t, eu, us, 0, 0, time.Millisecond)
	us.start(t, "us-2", nil)
	await(t, "us has its share again", func() bool {
		s := us.state(t, key)
		return s.Phase == rights.Active && s.Share == 800_000
	})
}

// TestNumberForgotten: us once took a number of the far future for a key, its clock was wrong, and has forgotten it with the key. eu
// remembers, and us takes a higher one.
func TestNumberForgotten(t *testing.T) {
	eu, us := moved(t)
	await(t, "the rules know that the key has moved", func() bool { return us.rules.Load().Lookup(key.Tenant, key.Route).Moved })
	us.stop()
	future := time.Now().Add(time.Hour).UnixMilli() &^ 1
	task := redisstore.Task{Step: rights.Step{Op: rights.OpBegin, Key: key, Number: future, Lost: true}}
	task.Limit, _ = (&Exchange{o: Options{Rules: us.rules}}).limit(key)
	if r := us.store.Do(context.Background(), []redisstore.Task{task})[0]; r.Err != nil || r.Report.Verdict != rights.Applied {
		t.Fatalf("%+v", r)
	}
	elapsed := int64(100)
	active := func(above int64) bool {
		elapsed++
		offered(t, elapsed, us)
		s := us.state(t, key)
		return s.Moved && s.Incarnation >= above && s.Phase == rights.Active && s.Share == 800_000
	}
	stop := us.start(t, "us-2", nil)
	await(t, "us is active under that number", func() bool { return active(future) })
	stop()
	if err := us.client.Del(context.Background(), key.Redis()).Err(); err != nil {
		t.Fatal(err)
	}
	us.start(t, "us-3", nil)
	await(t, "us is active under a higher one", func() bool { return active(future + 1) })
	if s := eu.state(t, key); s.Share != 200_000 {
		t.Errorf("eu has %d", s.Share)
	}
}
