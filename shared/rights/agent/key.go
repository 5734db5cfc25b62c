package agent

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// key is what the agent knows about one key.
type key struct {
	id     limit.Key
	rule   *limit.Rule
	demand demand
	// level as last reported by the store.
	level level
	// since is when the agent began to follow the key, used when it was last of interest to anybody.
	since, used time.Time
	// looking: a look is under way since lookedAt.
	looking  bool
	lookedAt time.Time
	// due is when share that waits comes into force, by the store's clock; zero for none.
	due    time.Time
	peers  []peer
	asking asking
	budget budget
	// term and cycle of the advice followed last, and what it said.
	term, cycle int64
	advised     []Advice
}

// level is what a report told.
type level struct {
	known            bool
	at               time.Time
	tokens           float64
	effective        float64
	share, floor     limit.Share
	held             int64
	moved            bool
	incarnation      int64
	phase            rights.Phase
	capacity, rate   float64 // of the slice: tokens, tokens per second
	whole, wholeRate float64 // of the key worldwide
}

// gave is the level after share has been given: what no longer fits rides along.
func (l *level) gave(amount limit.Share) {
	part := float64(amount) / float64(limit.Whole)
	l.share -= amount
	l.capacity -= l.whole * part
	l.rate -= l.wholeRate * part
	l.effective -= l.whole * part
	l.tokens = min(l.tokens, l.effective)
}

// peer is what the agent knows about one peer, for one key.
type peer struct {
	region string
	// row is the last row known, pending that it is not acknowledged, sent when it left and how often.
	row     rights.Row
	pending bool
	sent    time.Time
	tries   int
	// spare tokens of the peer as it last said, and when.
	spare   float64
	spareAt time.Time
	// standing is the peer's ask; credit has grown with its flow until creditAt.
	standing Ask
	until    time.Time
	creditAt time.Time
}

// asking is the state of this region's own asks.
type asking struct {
	last, lastFill time.Time
	gap            time.Duration
	wanted, got    float64
}

func (k *key) peer(region string) *peer {
	for i := range k.peers {
		if k.peers[i].region == region {
			return &k.peers[i]
		}
	}
	return nil
}

// learn takes in a report about the key.
func (k *key) learn(now time.Time, r *rights.Report) {
	whole, wholeRate := float64(k.rule.Capacity), float64(k.rule.Refill)/float64(k.rule.PeriodSeconds)
	if k.rule.Algorithm != limit.TokenBucket {
		wholeRate = whole / float64(k.rule.PolicyWindow())
	}
	k.due = time.Time{}
	if r.Waiting > 0 {
		k.due = time.UnixMicro(r.Due)
	}
	part := float64(r.Share) / float64(limit.Whole)
	k.level = level{
		known: true, at: now, tokens: r.Tokens, effective: r.Effective, share: r.Share, floor: r.Floor, held: r.Held,
		moved: r.Pair.Opened || r.Pair.Out != rights.Sent{} || r.Pair.In != rights.Received{} || k.level.moved,
		phase: r.Phase, incarnation: r.Incarnation,
		capacity: whole * part, rate: wholeRate * part, whole: whole, wholeRate: wholeRate,
	}
}

// tokens estimates the level at now from the last report.
func (k *key) tokens(now time.Time) float64 {
	l := &k.level
	elapsed := max(now.Sub(l.at).Seconds(), 0)
	return min(l.effective, l.tokens+(l.rate-k.demand.fast)*elapsed)
}

// reserve is what a donor keeps for its own demand.
func (k *key) reserve(p *Policy) float64 {
	ahead := p.Ahead.Seconds()
	v := max(0, (k.demand.peak-k.level.rate)*ahead)
	if expected := k.demand.peak * ahead; expected >= 1 {
		v += p.Deviations * math.Sqrt(expected)
	}
	return min(v, p.ReserveCap*k.level.capacity)
}

// cushion is what even an urgent asker does not get. Loans skim what lies above, so the level below is a random walk that
// drifts upwards by the margin of the rate over the demand: it reaches zero with probability exp(−2·cushion·margin ÷ demand),
// here one in twenty.
func (k *key) cushion(p *Policy) float64 {
	margin := k.level.rate - k.demand.usual
	if margin <= 0 {
		return 0
	}
	return min(1.5*k.demand.usual/margin, p.ReserveCap*k.level.capacity)
}

// spare is what the region could lend now.
func (k *key) spare(now time.Time, p *Policy) float64 {
	if !k.level.known || k.level.phase != rights.Active {
		return 0
	}
	return max(0, k.tokens(now)-k.reserve(p))
}

// quantum is the smallest loan that is worth a message.
func (k *key) quantum(p *Policy) float64 {
	return max(1, min(p.Quantum*k.level.wholeRate, p.Quantum*k.level.whole))
}

// tiny tells whether all rights to the key sit in one home region: nothing is lent, and share moves whole.
func (k *key) tiny() bool { return k.rule.Tiny(len(k.peers) + 1) }

// still tells whether the fast loop leaves the key alone.
func (k *key) still() bool { return k.rule.Still(len(k.peers) + 1) }

// fewTokens in an average slice make each one count: a loan of one is a large part of what its donor's next requests need.
const fewTokens = 4

// few tells whether an average slice holds few tokens.
func (k *key) few() bool { return k.level.whole < fewTokens*float64(len(k.peers)+1) }

// small tells whether loans can hurt: what travels would be a large part of the capacity.
func (k *key) small(p *Policy, trip time.Duration) bool {
	return k.few() || k.level.whole < p.SmallTrips*k.level.wholeRate*trip.Seconds()
}

// idle tells whether the region of a small limit uses so little of its rate that it can lend what it holds. Where tokens are
// few so are requests, and a moment without any proves nothing.
func (k *key) idle() bool {
	expect := k.demand.fast
	if k.few() {
		expect = max(expect, k.demand.slow, k.demand.usual)
	}
	return expect < k.level.rate/2
}
