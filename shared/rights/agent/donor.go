package agent

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// hearAsk makes a peer's ask the standing one.
func (a *Agent) hearAsk(now time.Time, k *key, ask Ask) {
	q := k.peer(ask.From)
	if q == nil {
		return
	}
	q.spare, q.spareAt = max(ask.Spare, 0), now
	if ask.empty() {
		return
	}
	if ask.Fill > 0 && q.until.After(now) && !q.standing.empty() {
		q.standing.Fill = ask.Fill // asking for overflow does not end the ask for more
	} else {
		if ask.Fill <= 0 && q.until.After(now) {
			ask.Fill = q.standing.Fill // and asking for more does not end the ask for overflow
		}
		q.standing, q.creditAt = ask, now
	}
	q.until = now.Add(min(max(ask.Life, 0), 5*time.Second))
	a.look(now, k)
}

// donate serves the standing asks from what the region has to spare.
func (a *Agent) donate(now time.Time, k *key) {
	if !k.level.known || k.level.phase != rights.Active || !a.lends(k) {
		return
	}
	for i := range k.peers {
		q := &k.peers[i]
		if q.standing.empty() {
			continue
		}
		if !q.until.After(now) {
			q.standing = Ask{}
			continue
		}
		a.giveShare(now, k, q)
		a.lend(now, k, q)
	}
}

// lendingRoom is the least share that a donor stays at, in percent of its floor. At the floor itself nothing can be lent (R3),
// and what an idle region's floor brings in would overflow.
const lendingRoom = 125

// giveShare moves share to a peer whose demand has been above its rate, as far as this region's own stays covered. Where slices
// hold few tokens that is left to the rebalancer: a second or two say too little of so few requests.
func (a *Agent) giveShare(now time.Time, k *key, q *peer) {
	if k.few() || q.standing.Rate <= 0 || k.level.wholeRate <= 0 || !k.demand.told(now, k.since) {
		return
	}
	keep := max(a.needed(now, k)+a.share(a.policy.ShareStep), a.reactive(k), k.level.floor*lendingRoom/100, a.oneRequest(k))
	amount := min(a.shareOf(k, q.standing.Rate), k.level.share-keep)
	if amount < a.share(a.policy.ShareStep) || !a.spend(now, k, transferMessages) {
		return
	}
	q.standing.Flow = max(0, q.standing.Flow-q.standing.Rate)
	q.standing.Rate = 0
	a.step(rights.Step{Key: k.id, Op: rights.OpGive, Peer: q.region, Amount: int64(amount), Keep: float64(keep)})
	k.level.gave(amount)
}

// needed is the share that the region's demand needs now. Chance makes the last seconds look lower than they are, so the last
// quarter of a minute counts too, unless the demand has clearly gone. Where messages run low, loans no longer carry what it has
// left behind, and a demand that has halved within a second is gone.
func (a *Agent) needed(now time.Time, k *key) limit.Share {
	d := &k.demand
	expect := max(d.fast, d.slow)
	if d.fast < d.slow/2 && !a.budget(now, k).plenty() {
		expect = d.fast
	}
	if d.usual < 1.25*expect {
		expect = max(expect, d.usual)
	}
	return a.shareOf(k, expect+math.Sqrt(expect))
}

// reactive is the share whose capacity lasts until help arrives when the demand of the last minutes returns.
func (a *Agent) reactive(k *key) limit.Share {
	expected := k.demand.high * a.policy.Reaction.Seconds()
	return a.share((expected + a.policy.Deviations*math.Sqrt(expected)) / k.level.whole)
}

// oneRequest is the share that holds the dearest request.
func (a *Agent) oneRequest(k *key) limit.Share {
	return a.share(float64(k.rule.LargestCost()) / k.level.whole)
}

func (a *Agent) shareOf(k *key, rate float64) limit.Share {
	if k.level.wholeRate <= 0 {
		return limit.Whole
	}
	return a.share(rate / k.level.wholeRate)
}

func (a *Agent) share(part float64) limit.Share {
	return limit.Share(math.Ceil(min(max(part, 0), 1) * float64(limit.Whole)))
}

// lend lends tokens to a peer: what it needs, as long as enough stays for the region itself.
func (a *Agent) lend(now time.Time, k *key, q *peer) {
	p, ask := &a.policy, &q.standing
	ask.Need += ask.Flow * now.Sub(q.creditAt).Seconds()
	q.creditAt = now
	tokens, keep := k.tokens(now), k.reserve(p)
	if ask.Urgent {
		keep *= p.UrgentReserve
	}
	keep = max(keep, k.cushion(p))
	spare := tokens - keep
	if k.small(p, a.trip) {
		most := p.SmallLoans * k.level.capacity
		if k.idle() {
			most = k.level.capacity
		}
		spare = min(spare, most-float64(k.level.held))
	}
	// Few messages have to carry more each, as far as the slice ever holds it.
	quantum := max(k.quantum(p), min(k.quantum(p)*a.budget(now, k).scarcity(), (k.level.effective-keep)/2))
	amount := math.Floor(min(math.Ceil(ask.Need-0.3), spare))
	if amount >= 1 && (amount >= ask.Need-0.3 && ask.Flow <= 0 || amount >= quantum) {
		if a.lendStep(now, k, q, amount, keep) {
			ask.Need = max(0, ask.Need-amount)
		}
	}
	if ask.Fill > 0 { // only what would otherwise overflow, until it is known whether the loan has made room
		over := k.tokens(now) + max(0, k.level.rate-k.demand.fast)*p.Ahead.Seconds() - 0.97*k.level.effective
		if x := math.Floor(min(ask.Fill, over)); x >= quantum {
			if a.lendStep(now, k, q, x, keep) {
				ask.Fill -= x
			}
		}
	}
}

// lendStep makes a loan, unless the key's messages are spent: then the ask stands. The last of them are for share, which ends
// the need for loans.
func (a *Agent) lendStep(now time.Time, k *key, q *peer, amount, keep float64) bool {
	if a.budget(now, k).left < 2*transferMessages || !a.spend(now, k, transferMessages) {
		return false
	}
	a.step(rights.Step{Key: k.id, Op: rights.OpLend, Peer: q.region, Amount: int64(amount), Keep: keep})
	k.level.tokens -= amount
	k.level.effective -= amount
	k.level.held += int64(amount)
	return true
}
