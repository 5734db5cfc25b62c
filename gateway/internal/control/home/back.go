package home

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/wire"
)

// returnable is how many admissions for other regions can be given back at a time, the oldest making room for the newest, and
// returnWithin for how long each: the other limits of a request are decided within its budget.
const (
	returnable   = 4_096
	returnWithin = 5 * time.Second
)

// admissions are what was admitted for other regions, by the sequence number of the reply that said so.
type admissions struct {
	mu    sync.Mutex
	known map[uint64]admission
	order [returnable]uint64 // a ring
	next  int
}

type admission struct {
	limit bucket.Limit
	at    time.Time
}

func newAdmissions() *admissions { return &admissions{known: map[uint64]admission{}} }

func (a *admissions) add(reply uint64, lim bucket.Limit, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, a.order[a.next])
	a.order[a.next] = reply
	a.next = (a.next + 1) % returnable
	a.known[reply] = admission{lim, now}
}

// take forgets an admission, so that it is given back once at most.
func (a *admissions) take(reply uint64, now time.Time) (bucket.Limit, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	got, ok := a.known[reply]
	delete(a.known, reply)
	return got.limit, ok && now.Sub(got.at) <= returnWithin
}

// giveBack tells the home that what reply admitted is not used. It is sent once; lost, the tokens are lost.
func (h *Home) giveBack(to string, reply *wire.Consumed) {
	h.metrics.asked("given back")
	data, err := wire.Encode(&wire.Return{
		Header: h.header(), To: to, ToInstance: reply.Instance, ToStarted: reply.Started, Reply: reply.Sequence,
	})
	if err == nil {
		err = h.o.Conn.Publish(wire.SubjectReturn(to), data)
	}
	if err != nil {
		h.o.Logger.Debug("tokens not given back to their home", "to", to, "error", err)
	}
}

// takeBack puts what is given back into the bucket it came from. Of rights that have left meanwhile nothing fits.
func (h *Home) takeBack(ctx context.Context, m *nats.Msg) {
	r := new(wire.Return)
	if err := wire.Decode(m.Data, r); err != nil || r.To != h.o.Region {
		h.metrics.served("malformed")
		return
	}
	if r.ToInstance != h.o.Instance || r.ToStarted != h.started.UnixMilli() {
		return // another instance's
	}
	lim, ok := h.admitted.take(r.Reply, time.Now())
	if !ok {
		return
	}
	lim.Owed, lim.Cost = -lim.Cost, 0
	bounded, cancel := context.WithTimeout(ctx, h.o.Deadline)
	defer cancel()
	if _, err := h.o.Store.Take(bounded, []bucket.Limit{lim}); err != nil {
		h.o.Logger.DebugContext(ctx, "tokens given back are lost", "key", lim.Key.String(), "error", err)
		return
	}
	h.metrics.served("taken back")
}
