package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// Options of a Proxy. All are needed.
type Options struct {
	Conn     *nats.Conn
	Instance string
	Started  time.Time
	Logger   *slog.Logger
	// Repeat is the time between two repetitions of a message that has not been answered.
	Repeat time.Duration
}

// Proxy acts as regions that are dead.
type Proxy struct {
	Options
	sequence uint64
}

// bundle is how many keys are recovered together: their names and counters fit into one message each way.
const bundle = 200

// Claim is what is to be recovered.
type Claim struct {
	Region string
	// Peers must be all other regions of the deployment.
	Peers []string
	Keys  []Key
	// Number is the incarnation to act under, one that nobody has had before.
	Number int64
	// Sure, where the region has only fallen silent, is asked before anything is minted, and each of the peers must agree that
	// the region's lease is over. Nil on an operator's word that the region is dead.
	Sure func(ctx context.Context) error
}

// ErrAlive is why nothing is minted: the region was heard of, or lives under a number above the leader's.
var ErrAlive = errors.New("the region is alive")

// Recover mints anew what a region holds of keys above their floors, for its peers. It returns what each peer has got of each
// key, in the order of peers, once all have booked it. It waits for peers that do not answer, or do not agree, until ctx ends;
// what it returns then has been booked, the rest may have been.
func (p *Proxy) Recover(ctx context.Context, c Claim) (map[limit.Key][]limit.Share, error) {
	messages := make(chan *nats.Msg, 256)
	for _, subject := range []string{wire.SubjectAnswer(c.Region, "*"), wire.SubjectAck(c.Region, "*")} {
		s, err := p.Conn.ChanSubscribe(subject, messages)
		if err != nil {
			return nil, fmt.Errorf("recover region %s: %w", c.Region, err)
		}
		defer s.Unsubscribe() //nolint:errcheck // the connection may be gone already
	}
	minted := make(map[limit.Key][]limit.Share, len(c.Keys))
	number := c.Number
	for some := range slices.Chunk(c.Keys, bundle) {
		r := newRecovery(c.Region, c.Peers, some, number)
		r.agreed = c.Sure != nil
		parts, err := p.drive(ctx, r, messages, c.Sure)
		if err != nil {
			return minted, fmt.Errorf("recover region %s: %w", c.Region, err)
		}
		for key, shares := range parts {
			minted[key] = shares
		}
		number = r.number // the peers know it by now
	}
	return minted, nil
}

// drive sends what r has to say and feeds it what comes back, until everything is booked.
func (p *Proxy) drive(ctx context.Context, r *recovery, messages <-chan *nats.Msg, sure func(context.Context) error) (minted map[limit.Key][]limit.Share, err error) {
	tick := time.NewTicker(p.Repeat)
	defer tick.Stop()
	p.say(r)
	for {
		select {
		case <-ctx.Done():
			if minted == nil {
				return nil, fmt.Errorf("%v have not answered, nothing is minted: %w", r.unanswered(), ctx.Err())
			}
			return nil, fmt.Errorf("not everything was acknowledged: %w", ctx.Err())
		case <-tick.C:
			p.say(r)
		case m := <-messages:
			p.hear(r, m)
		}
		if r.alive {
			return nil, ErrAlive
		}
		if minted == nil && len(r.unanswered()) == 0 {
			if sure != nil {
				if err := sure(ctx); err != nil {
					return nil, err
				}
			}
			minted = r.mint()
			p.say(r)
		}
		if minted != nil && len(r.unbooked()) == 0 {
			return minted, nil
		}
	}
}

// hear decodes what came on a subject that ends with its sender's region.
func (p *Proxy) hear(r *recovery, m *nats.Msg) {
	var (
		a   wire.Answer
		ack wire.Ack
	)
	before := r.number
	switch {
	case wire.Decode(m.Data, &a) == nil && m.Subject == wire.SubjectAnswer(r.region, a.Region):
		if slices.Contains(r.peers, a.Region) {
			r.hear(&a)
		}
	case wire.Decode(m.Data, &ack) == nil && m.Subject == wire.SubjectAck(r.region, ack.Region):
		r.hearAck(&ack)
	}
	if r.number != before {
		p.say(r)
	}
}

// say sends everything that is still to be answered.
func (p *Proxy) say(r *recovery) {
	if r.sent == nil {
		names := make([]wire.KeyName, len(r.keys))
		for i, k := range r.keys {
			names[i] = wire.KeyName{Tenant: k.Key.Tenant, Route: k.Key.Route}
		}
		for _, peer := range r.unanswered() {
			p.publish(wire.SubjectVoid(peer, r.region), &wire.Void{Header: p.header(r), To: peer, Keys: names, Moved: len(names), Dead: !r.agreed, Proxy: r.agreed})
		}
		return
	}
	for _, t := range r.unbooked() {
		t.Header = p.header(r)
		p.publish(wire.SubjectTransfer(t.To, r.region), &t)
	}
}

func (p *Proxy) header(r *recovery) wire.Header {
	p.sequence++
	return wire.Header{Version: wire.Version, Region: r.region, Instance: p.Instance, Incarnation: r.number, Sequence: p.sequence, Started: p.Started.UnixMilli()}
}

func (p *Proxy) publish(subject string, m wire.Message) {
	data, err := wire.Encode(m)
	if err == nil {
		err = p.Conn.Publish(subject, data)
	}
	if err != nil {
		p.Logger.Warn("not sent, will be repeated", "subject", subject, "error", err)
	}
}
