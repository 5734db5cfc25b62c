package modelcheck

import (
	"fmt"
	"math"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// names of the regions.
var names = [maxRegions]string{"a", "b", "c"}

func indexOf(region string) int { return slices.Index(names[:], region) }

// epoch is the only "now" a world knows: a tick moves every bucket's timestamp one second back instead.
var epoch = time.UnixMilli(1_760_256_000_000)

// maxLag is how many ticks a bucket may stay unsettled: time beyond it is lost, which only takes tokens away.
const maxLag = 2

type kind uint8

const (
	row kind = iota + 1
	ack
	void
	answer
	pending
)

// message is any message, in integers: shares in units, rides in whole tokens.
type message struct {
	kind           kind
	from, to       int8
	number, target int8 // incarnations: the sender's and the receiver's
	out            [3]int8
	in, acked      [4]int8
}

// control is the control plane as a voter.
const control = int8(maxRegions)

// leader is an attempt to mint anew what region 0 holds.
type leader struct {
	number  int8
	done    bool
	answers [maxRegions]message // kind 0: not heard
}

// world is everything that decides what can happen next.
type world struct {
	regions []rights.State
	// leased: the region's lease runs. lost: its Redis lost its data and has no new incarnation yet.
	leased, lost [maxRegions]bool
	// next is each region's durable counter of incarnations.
	next [maxRegions]int8
	// net holds every message ever sent, sorted, each once.
	net []message
	// level of the virtual bucket of the whole limit.
	level int8
	// overlap: 0 before any region heard of the new rule, 1 while some have, 2 after.
	overlap                        int8
	moves, losses, fences, resumes int8
	// granter is the voter whose answer let region 0 resume: a region, or control; −1 while its lease is everybody's or nobody's.
	granter int8
	leaders [2]leader
	// copied is an older copy of region Failing[0]'s tokens, −1 if none was taken.
	copied int8
}

func (c *Scope) initial() *world {
	w := &world{copied: -1, granter: -1, level: int8(c.Units * c.Capacity)}
	for i := range c.Base {
		s := rights.New(c.numbers(i, false), c.floor(i), 1, epoch)
		peers := map[string]int64{}
		for j := range c.Base {
			if j != i {
				peers[names[j]] = 1
			}
		}
		s.Open(peers)
		w.regions = append(w.regions, s)
		w.leased[i], w.next[i] = true, 2
	}
	return w
}

func (w *world) clone() *world {
	n := *w
	n.regions = slices.Clone(w.regions)
	for i := range n.regions {
		n.regions[i].Pairs = slices.Clone(n.regions[i].Pairs)
	}
	n.net = slices.Clone(w.net)
	return &n
}

// send puts a message into the network.
func (w *world) send(m message) {
	i, found := slices.BinarySearchFunc(w.net, m, compare)
	if !found {
		w.net = slices.Insert(w.net, i, m)
	}
}

func compare(a, b message) int {
	x, y := a.bytes(), b.bytes()
	return slices.Compare(x[:], y[:])
}

func (m message) bytes() [16]int8 {
	return [16]int8{
		int8(m.kind), m.from, m.to, m.number, m.target, m.out[0], m.out[1], m.out[2],
		m.in[0], m.in[1], m.in[2], m.in[3], m.acked[0], m.acked[1], m.acked[2], m.acked[3],
	}
}

// encode writes the world as bytes such that two worlds with the same bytes have the same future.
func (c *Scope) encode(w *world, b []byte) []byte {
	n := func(vs ...int8) {
		for _, v := range vs {
			b = append(b, byte(v))
		}
	}
	flag := func(vs ...bool) {
		for _, v := range vs {
			if v {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	for i := range w.regions {
		s := &w.regions[i]
		n(int8(s.Phase), int8(s.Incarnation), int8(s.Revision.Number), c.units(s.Share), c.units(s.Base), whole(s.Tokens), int8((epoch.UnixMicro()-s.At)/1e6), int8(len(s.Pairs)))
		flag(w.leased[i], w.lost[i], s.Moved)
		n(w.next[i])
		for k := range s.Pairs {
			p := &s.Pairs[k]
			o, in, a := c.sent(p.Out), c.received(p.In), c.received(p.Acked)
			n(int8(indexOf(p.Region)), int8(p.Incarnation))
			n(o[:]...)
			n(in[:]...)
			n(a[:]...)
			flag(p.Answered) // Opened only tells what to send again, and everything is deliverable for ever
		}
	}
	for k := range w.leaders {
		l := &w.leaders[k]
		n(l.number)
		flag(l.done)
		for _, a := range l.answers[:len(w.regions)] {
			x := a.bytes()
			n(x[:]...)
		}
	}
	n(w.level, w.overlap, w.moves, w.losses, w.fences, w.resumes, w.granter, w.copied)
	for _, m := range w.net {
		x := m.bytes()
		n(x[:]...)
	}
	return b
}

func (c *Scope) units(s limit.Share) int8 {
	if s%c.unit() != 0 {
		panic(fmt.Sprintf("share %d is no multiple of %d", s, c.unit()))
	}
	return int8(s / c.unit())
}

func whole(x float64) int8 {
	if x != math.Trunc(x) || x < -100 || x > 100 {
		panic(fmt.Sprintf("level %g is not a small whole number", x))
	}
	return int8(x)
}

func (c *Scope) sent(s rights.Sent) [3]int8 {
	return [3]int8{c.units(s.Share), whole(float64(s.Ride) / rights.Milli), int8(s.Loan)}
}

func (c *Scope) received(r rights.Received) [4]int8 {
	s := c.sent(r.Sent)
	return [4]int8{s[0], s[1], s[2], int8(r.Refused)}
}

func (c *Scope) toSent(x [3]int8) rights.Sent {
	return rights.Sent{Share: limit.Share(x[0]) * c.unit(), Ride: int64(x[1]) * rights.Milli, Loan: int64(x[2])}
}

func (c *Scope) toReceived(x [4]int8) rights.Received {
	return rights.Received{Sent: c.toSent([3]int8{x[0], x[1], x[2]}), Refused: int64(x[3])}
}
