package lease

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Guard is the lease as one instance of a region holds it. Each instance renews for itself: the voters count an answer to any
// of them as one to the region, so what they take over is over for all.
//
//	         leases run                    a majority has answered, or one lease has passed
//	off ────────────────────▶ arming ───────────────────────────────────────────▶ on
//	 ▲                                                                             │ leases run no more
//	 └── a majority has answered renewals that say so ── leaving ◀─────────────────┘
//
// On and leaving are fenced while no majority answers. A process that begins in a deployment with leases is on at once: it
// cannot know what happened before. Renewals say whether the instance fences; voters take over only where all do, so they are
// sent also while no leases run. What voters cannot know of is an instance that none of them has heard since it started: leases
// are to be switched on while all instances are connected.
//
// The lease is of one incarnation: an answer counts only if it is to the region's present one. A voter answers none that it
// knows to be void, and voids none within Lease + Margin of an answer. So an instance that is fenced may go on under the same
// incarnation once a majority answers again: nothing can have been minted meanwhile, since that takes every voter's agreement.
type Guard struct {
	region string
	life   int64
	terms  Terms
	clock  func() time.Duration
	until  atomic.Int64 // the instance is fenced from then on

	mu          sync.Mutex
	stage       stage
	votes       Votes
	incarnation int64
	since       time.Duration // of arming, of leaving
	holder      *Holder
	// answered is the latest stamp that each voter has answered under this incarnation.
	answered map[string]time.Duration
}

type stage uint8

const (
	unknown stage = iota
	off
	arming
	on
	leaving
)

// forever is an end that never comes.
const forever = math.MaxInt64

// NewGuard knows of no deployment yet, and is fenced until it does. life tells one life of the instance from another.
func NewGuard(region string, life int64, terms Terms, clock func() time.Duration) *Guard {
	g := &Guard{region: region, life: life, terms: terms, clock: clock, answered: map[string]time.Duration{}}
	g.restart()
	return g
}

// Fenced tells whether the region's floor is all that this instance may use now. It is cheap where no leases run.
func (g *Guard) Fenced() bool {
	until := g.until.Load()
	return until != forever && int64(g.clock()) >= until
}

// Deploy says who votes, whenever that may have changed, and lets time pass.
func (g *Guard) Deploy(v Votes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if changed := !maps.Equal(v.Domain, g.votes.Domain); changed && (v.Run() || g.stage <= arming) {
		g.votes = v
		g.restart()
	}
	switch {
	case g.stage == unknown && v.Run():
		g.enter(on, now)
	case g.stage == unknown, g.stage == arming && !v.Run():
		g.enter(off, now)
	case g.stage == off && v.Run():
		g.enter(arming, now)
	case g.stage == arming && (g.holder.Live(now) || now-g.since >= g.terms.Lease), g.stage == leaving && v.Run():
		g.enter(on, now)
	case g.stage == on && !v.Run():
		g.enter(leaving, now)
	}
	g.judge()
}

// Incarnation says under which number the region lives. Answers to another one count no more.
func (g *Guard) Incarnation(number int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if number != g.incarnation {
		g.incarnation, g.answered = number, map[string]time.Duration{}
		g.restart()
		g.judge()
	}
}

// Call is what an instance says to every voter, once in Terms.Renew.
type Call struct {
	Renewal
	Incarnation int64
	// Lease is how long the instance takes an answer to hold; 0 asks for none.
	Lease time.Duration
	// Fences: the instance keeps to its floor when the lease is over.
	Fences bool
}

// Call is to be sent to every voter now. ok is false while nothing is known that could be said.
func (g *Guard) Call() (c Call, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stage == unknown || g.incarnation == 0 {
		return Call{}, false
	}
	c = Call{Renewal: g.holder.Renewal(g.clock()), Incarnation: g.incarnation, Fences: g.stage == on}
	if g.stage != off {
		c.Lease = g.terms.Lease
	}
	return c, true
}

// Hear takes in a voter's answer to a renewal of that incarnation.
func (g *Guard) Hear(a Answer, incarnation int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder == nil || incarnation != g.incarnation {
		return
	}
	now := g.clock()
	if _, votes := g.votes.Domain[a.Voter]; votes && a.Region == g.region && a.Life == g.life && a.Stamp <= now {
		g.answered[a.Voter] = max(g.answered[a.Voter], a.Stamp)
	}
	a.Voter = g.votes.Domain[a.Voter]
	g.holder.Hear(now, a)
	if end, ok := g.holder.Until(); g.stage == leaving && ok && end >= g.since+g.terms.Lease {
		g.enter(off, now) // a majority knows that we no longer fence, and none of them will take over
	}
	g.judge()
}

// Life tells this life of the instance from others; answers carry it.
func (g *Guard) Life() int64 { return g.life }

// Terms of the lease.
func (g *Guard) Terms() Terms { return g.terms }

func (g *Guard) enter(s stage, now time.Duration) { g.stage, g.since = s, now }

// restart counts the answers by the votes as they are now.
func (g *Guard) restart() {
	g.holder = NewHolder(g.region, g.life, g.votes.others(g.region), g.terms)
	for voter, stamp := range g.answered {
		g.holder.Hear(stamp, Answer{Renewal: Renewal{Region: g.region, Life: g.life, Stamp: stamp}, Voter: g.votes.Domain[voter]})
	}
}

// judge sets the end of what the instance may use.
func (g *Guard) judge() {
	until := int64(forever)
	switch end, ok := g.holder.Until(); {
	case g.stage == off || g.stage == arming:
	case g.stage == unknown || !ok:
		until = 0
	default:
		until = int64(end)
	}
	g.until.Store(until)
}
