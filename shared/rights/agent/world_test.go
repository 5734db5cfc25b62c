package agent

import (
	"math"
	"math/rand/v2"
	"time"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// world is one key in virtual time: regions with an agent each over States, a network with delay and loss, Poisson arrivals,
// and beside them one ideal bucket that sees the same arrivals.
type world struct {
	rng      *rand.Rand
	rule     limit.Rule
	names    []string
	states   []rights.State
	agents   []*Agent
	offered  []float64
	refused  []float64
	oneWay   time.Duration
	loss     float64
	now      time.Time
	queue    map[int64][]func()
	ideal    bucket.Level
	virtual  bucket.Level
	admitted int
	could    int
	messages int
	// wrongful refusals, and arrivals, in steps in which the ideal bucket refused nothing.
	wrongful, calm int
	lowest         float64
	// offeredTo and refusedAt count per region, if not nil.
	offeredTo, refusedAt []int
}

const step = 10 * time.Millisecond

var testKey = limit.Key{Tenant: "t", Route: "r"}

func newWorld(seed uint64, rule limit.Rule, base []limit.Share, oneWay time.Duration, policy Policy) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), rule: rule, oneWay: oneWay, loss: 0.002,
		now: time.UnixMicro(1_760_256_000_000_000), queue: map[int64][]func(){},
		offered: make([]float64, len(base)), refused: make([]float64, len(base)),
	}
	for i := range base {
		w.names = append(w.names, string(rune('a'+i)))
	}
	for i, b := range base {
		numbers := bucket.NumbersOf(&rule, b)
		w.states = append(w.states, rights.New(numbers, b/20, 1, w.now))
		var peers []string
		for j := range base {
			if j != i {
				peers = append(peers, w.names[j])
			}
		}
		w.agents = append(w.agents, New(Options{
			Region: w.names[i], Peers: peers, Policy: policy, RoundTrip: 2 * oneWay,
			Rule: func(limit.Key) *limit.Rule { return &w.rule },
		}))
	}
	w.ideal = bucket.Level{Tokens: float64(rule.Capacity), At: w.now.UnixMicro()}
	w.virtual = w.ideal
	return w
}

func (w *world) slice() bucket.Slice {
	n := bucket.NumbersOf(&w.rule, limit.Whole)
	return n.Slice(bucket.Rights{}, false)
}

// run lets time pass. rate gives the arrivals per second of a region at a time since the beginning.
func (w *world) run(d time.Duration, rate func(region int, at time.Duration) float64) {
	begin := w.now
	for n := int64(0); w.now.Sub(begin) < d; n++ {
		tick := w.now.UnixMicro() / step.Microseconds()
		for _, f := range w.queue[tick] {
			f()
		}
		delete(w.queue, tick)
		w.arrive(func(i int) float64 { return rate(i, w.now.Sub(begin)) })
		for i, a := range w.agents {
			if (n+int64(i)*2)%5 == 0 {
				a.Observe(w.now, testKey, w.offered[i]/(5*step.Seconds()), w.refused[i])
				w.offered[i], w.refused[i] = 0, 0
			}
			a.Tick(w.now)
			w.drain(i)
		}
		w.now = w.now.Add(step)
	}
}

func (w *world) arrive(rate func(int) float64) {
	slice := w.slice()
	w.ideal, w.virtual = slice.Refill(w.ideal, w.now.UnixMicro()), slice.Refill(w.virtual, w.now.UnixMicro())
	before := w.wrongful
	idealRefused, arrivals := false, 0
	for i := range w.states {
		for range poisson(w.rng, rate(i)*step.Seconds()) {
			arrivals++
			w.offered[i]++
			if w.offeredTo != nil {
				w.offeredTo[i]++
			}
			if w.ideal.Tokens >= 1-1e-9 {
				w.ideal.Tokens--
				w.could++
			} else {
				idealRefused = true
			}
			if w.states[i].Take(w.now, 1) {
				w.admitted++
				w.virtual.Tokens--
				w.lowest = min(w.lowest, w.virtual.Tokens)
			} else {
				w.refused[i]++
				if w.refusedAt != nil {
					w.refusedAt[i]++
				}
				w.wrongful++
			}
		}
	}
	if idealRefused {
		w.wrongful = before
	} else {
		w.calm += arrivals
	}
}

// drain executes what an agent wants until it wants nothing more.
func (w *world) drain(i int) {
	for {
		out := w.agents[i].Drain()
		for _, m := range out.Rows {
			w.send(m.Row.To, func(b *Agent) { b.HearRow(w.now, m) })
		}
		for _, m := range out.Acks {
			w.send(m.Ack.To, func(b *Agent) { b.HearAck(w.now, m) })
		}
		for _, m := range out.Asks {
			w.send(m.To, func(b *Agent) { b.HearAsk(w.now, m) })
		}
		if len(out.Steps) == 0 {
			return
		}
		peers := map[string]int64{}
		for j, n := range w.names {
			if j != i {
				peers[n] = 1
			}
		}
		for _, s := range out.Steps {
			r := w.states[i].Do(rights.Env{Now: w.now, Peers: peers}, s)
			w.agents[i].Reported(w.now, s, r)
		}
	}
}

func (w *world) send(to string, deliver func(*Agent)) {
	w.messages++
	if w.rng.Float64() < w.loss {
		return
	}
	at := w.now.Add(time.Duration(float64(w.oneWay)*(0.8+0.4*w.rng.Float64()))).UnixMicro()/step.Microseconds() + 1
	for i, n := range w.names {
		if n == to {
			w.queue[at] = append(w.queue[at], func() { deliver(w.agents[i]); w.drain(i) })
		}
	}
}

func (w *world) efficiency() float64 { return float64(w.admitted) / float64(w.could) }

func poisson(r *rand.Rand, mean float64) int {
	if mean <= 0 {
		return 0
	}
	if mean > 60 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	l, p := math.Exp(-mean), 1.0
	for n := 0; ; n++ {
		if p *= r.Float64(); p <= l {
			return n
		}
	}
}
