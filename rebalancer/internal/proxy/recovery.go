package proxy

import (
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/wire"
)

// Key is one moved key of the dead region.
type Key struct {
	Key limit.Key
	// Base is the region's base share of the key, noted when it first moved; Floor what stays the region's.
	Base, Floor limit.Share
	// Weights of the peers, in their order: what is minted is divided by them.
	Weights []float64
}

// recovery is the state of one bundle of keys. It is pure: messages in, messages out.
type recovery struct {
	region string
	peers  []string
	keys   []Key
	number int64
	// agreed: every answer must say that the region's lease is over. alive: the region was found to live under a higher number.
	agreed, alive bool
	// answers of each peer by key, complete where all parts have come.
	answers map[string]*answer
	// sent are the rows minted for each peer, acked how far it has booked them.
	sent  map[string][]wire.Transfer
	acked map[string]map[limit.Key]limit.Share
}

type answer struct {
	parts map[int]bool
	keys  map[limit.Key]wire.AnswerKey
	done  bool
}

func newRecovery(region string, peers []string, keys []Key, number int64) *recovery {
	r := &recovery{region: region, peers: peers, keys: keys}
	r.restart(number)
	return r
}

// restart takes another number: what was answered to the old one counts no more.
func (r *recovery) restart(number int64) {
	r.number, r.answers, r.sent = number, map[string]*answer{}, nil
	r.acked = map[string]map[limit.Key]limit.Share{}
}

// hear takes in a peer's answer.
func (r *recovery) hear(a *wire.Answer) {
	switch {
	case a.To != r.region || a.ReceiverIncarnation != r.number || r.sent != nil:
		return
	case a.Known >= r.number && r.agreed:
		r.alive = true
		return
	case a.Known >= r.number:
		r.restart((a.Known + 1) | 1)
		return
	case r.agreed && !a.Agreed:
		return // a gateway that knows nothing of leases yet
	}
	h := r.answers[a.Region]
	if h == nil || a.Part <= 1 {
		h = &answer{parts: map[int]bool{}, keys: map[limit.Key]wire.AnswerKey{}}
		r.answers[a.Region] = h
	}
	for _, k := range a.Keys {
		if k.Pending {
			delete(r.answers, a.Region) // it re-learns the key itself: ask again
			return
		}
		h.keys[limit.Key{Tenant: k.Tenant, Route: k.Route}] = k
	}
	h.parts[a.Part] = true
	h.done = len(h.parts) >= max(1, a.Parts)
}

// unanswered are the peers to be asked (again).
func (r *recovery) unanswered() (list []string) {
	for _, peer := range r.peers {
		if h := r.answers[peer]; h == nil || !h.done {
			list = append(list, peer)
		}
	}
	return list
}

// mint makes the rows, once everybody has answered. It tells what each peer gets of each key.
func (r *recovery) mint() map[limit.Key][]limit.Share {
	r.sent = map[string][]wire.Transfer{}
	minted := make(map[limit.Key][]limit.Share, len(r.keys))
	for i := range r.keys {
		k := &r.keys[i]
		answers, complete := r.answersOf(k.Key)
		if !complete {
			continue // a peer has left the key out although it was asked for: nothing is minted of it
		}
		parts := limit.ApportionOf(rights.Excess(k.Base, k.Floor, answers), k.Weights)
		minted[k.Key] = parts
		for j, peer := range r.peers {
			if parts[j] > 0 {
				r.add(peer, k.Key, rights.MintRow(answers[j], k.Base, parts[j]))
			}
		}
	}
	return minted
}

func (r *recovery) answersOf(key limit.Key) (list []rights.Answer, complete bool) {
	for _, peer := range r.peers {
		k, ok := r.answers[peer].keys[key]
		if !ok {
			return nil, false
		}
		list = append(list, rights.Answer{
			From: peer, To: r.region, Incarnation: k.Incarnation, Receiver: r.number, Epoch: k.Epoch, Base: k.Base,
			Out: rights.Sent{Share: limit.Share(k.Out[0]), Ride: k.Out[1], Loan: k.Out[2]},
			In:  rights.Received{Sent: rights.Sent{Share: limit.Share(k.In[0]), Ride: k.In[1], Loan: k.In[2]}, Refused: k.In[3]},
		})
	}
	return list, true
}

// add puts a row into the transfer to its peer; keys of one incarnation travel together.
func (r *recovery) add(peer string, key limit.Key, row rights.Row) {
	wired := wire.Row{Tenant: key.Tenant, Route: key.Route, Epoch: row.Epoch, Share: row.Sent.Share, Ride: row.Sent.Ride, Loan: row.Sent.Loan, Base: row.Base}
	for i := range r.sent[peer] {
		if t := &r.sent[peer][i]; t.ReceiverIncarnation == row.Receiver {
			t.Rows = append(t.Rows, wired)
			return
		}
	}
	r.sent[peer] = append(r.sent[peer], wire.Transfer{To: peer, ReceiverIncarnation: row.Receiver, Rows: []wire.Row{wired}})
}

// hearAck notes what a peer has booked.
func (r *recovery) hearAck(a *wire.Ack) {
	if a.To != r.region || a.ReceiverIncarnation != r.number {
		return
	}
	if r.acked[a.Region] == nil {
		r.acked[a.Region] = map[limit.Key]limit.Share{}
	}
	for _, row := range a.Rows {
		key := limit.Key{Tenant: row.Tenant, Route: row.Route}
		r.acked[a.Region][key] = max(r.acked[a.Region][key], row.Share)
	}
}

// unbooked are the transfers that hold a row which its peer has not acknowledged.
func (r *recovery) unbooked() (list []wire.Transfer) {
	for _, peer := range r.peers {
		for _, t := range r.sent[peer] {
			for _, row := range t.Rows {
				if r.acked[peer][limit.Key{Tenant: row.Tenant, Route: row.Route}] < row.Share {
					list = append(list, t)
					break
				}
			}
		}
	}
	return list
}
