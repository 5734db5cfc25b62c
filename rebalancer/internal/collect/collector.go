package collect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// Collector listens to every region's usage reports and heartbeats and answers what the demand is. Safe for concurrent
// use.
type Collector struct {
	options Options
	start   time.Time
	metrics *metrics

	mu       sync.Mutex
	table    *Table
	expected map[string]bool
}

// New makes a collector that has heard nothing yet.
func New(o Options) (*Collector, error) {
	o = o.withDefaults()
	c := &Collector{options: o, start: o.Clock()}
	m, err := newMetrics(o.Meter, c)
	if err != nil {
		return nil, fmt.Errorf("collect metrics: %w", err)
	}
	c.metrics = m
	o.Counted = m.counted
	c.table = NewTable(o, m.drop)
	return c, nil
}

// Run subscribes and collects until ctx ends, then unsubscribes. A lost connection is not an error: nats.go subscribes
// again by itself, and the regions are unknown meanwhile.
func (c *Collector) Run(ctx context.Context) error {
	usage, err := c.options.Conn.Subscribe(wire.SubjectUsage("*"), c.onUsage)
	if err != nil {
		return fmt.Errorf("subscribe to usage: %w", err)
	}
	defer usage.Unsubscribe() //nolint:errcheck // the connection may be gone already
	heartbeat, err := c.options.Conn.Subscribe(wire.SubjectHeartbeat("*"), c.onHeartbeat)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	defer heartbeat.Unsubscribe() //nolint:errcheck // as above
	acks, err := c.options.Conn.Subscribe(wire.SubjectAck("*", "*"), c.onAck)
	if err != nil {
		return fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	defer acks.Unsubscribe() //nolint:errcheck // as above
	if err := acks.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		return fmt.Errorf("bound pending acknowledgements: %w", err)
	}
	// A rebalancer that falls behind drops messages rather than growing: counters are cumulative, so little is lost.
	if err := usage.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		return fmt.Errorf("bound pending usage: %w", err)
	}
	tick := time.NewTicker(c.options.Window)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.sweep()
		}
	}
}

const (
	pendingMessages = 65_536
	pendingBytes    = 64 << 20
)

func (c *Collector) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.Sweep(c.now())
}

func (c *Collector) now() time.Duration { return c.options.Clock().Sub(c.start) }

func (c *Collector) onUsage(m *nats.Msg) {
	var u wire.Usage
	if !c.decode(m, &u, &u.Header) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.Usage(c.now(), &u)
	c.metrics.report(len(u.Keys))
}

func (c *Collector) onHeartbeat(m *nats.Msg) {
	var h wire.Heartbeat
	if !c.decode(m, &h, &h.Header) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.Heartbeat(c.now(), &h)
}

// onAck hears what regions get from one another, for people: no plan rests on it.
func (c *Collector) onAck(m *nats.Msg) {
	var a wire.Ack
	if err := wire.Decode(m.Data, &a); err != nil || m.Subject != wire.SubjectAck(a.To, a.Region) {
		c.metrics.drop(dropMalformed, 1)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.Ack(c.now(), &a)
}

// decode reads a message and checks that it came on its own region's subject: NATS permissions let a region publish only
// there, so this is what its name is worth.
func (c *Collector) decode(m *nats.Msg, into wire.Message, h *wire.Header) bool {
	if err := wire.Decode(m.Data, into); err != nil {
		c.metrics.drop(dropMalformed, 1)
		c.options.Logger.Debug("report dropped", "subject", m.Subject, "error", err)
		return false
	}
	if i := strings.LastIndexByte(m.Subject, '.'); m.Subject[i+1:] != h.Region {
		c.metrics.drop(dropForeign, 1)
		return false
	}
	return true
}

// Demand lists every key in use with its loads in the named regions, in name order. Regions that are silent, or have not
// been heard for two windows, have Known false. The caller adds rules, last targets and pins.
func (c *Collector) Demand(now time.Time, regions []string) []plan.Demand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.Demand(now.Sub(c.start), regions)
}

// Refused is Demand of only those keys that some region refused in its latest window: the candidates for plan.Early.
func (c *Collector) Refused(now time.Time, regions []string) []plan.Demand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.Refused(now.Sub(c.start), regions)
}

// Regions tells what is known of each region heard so far, in name order.
func (c *Collector) Regions(now time.Time) []RegionStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.status(now.Sub(c.start))
}

// Expect says which regions there are that ought to be heard: what is known of others is told only while they speak. A leader knows
// them from the ledger; who does not lead expects nobody.
func (c *Collector) Expect(regions []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = make(map[string]bool, len(regions))
	for _, name := range regions {
		c.expected[name] = true
	}
}

// watched are the regions whose silence matters: those that are expected, and those that speak.
func (c *Collector) watched() []RegionStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(c.table.status(c.now()), func(r RegionStatus) bool {
		return !c.expected[r.Name] && r.Silence > c.options.SilentAfter
	})
}

// Details of a key, one per named region.
func (c *Collector) Details(now time.Time, name limit.Key, regions []string) []Detail {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.Details(now.Sub(c.start), now, name, regions)
}

// Torn counts the keys whose shares, as the regions use them, have not made a whole for a while: more, and less.
func (c *Collector) Torn() (over, short int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.over, c.table.short
}

// Share is the share that a region last reported to hold of a key, false if it never did.
func (c *Collector) Share(k limit.Key, region string) (limit.Share, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.table.regions[region]
	state := c.table.keys[k]
	if !ok || state == nil || len(state.loads) <= r || state.loads[r].share == 0 {
		return 0, false
	}
	return state.loads[r].share, true
}

// ForgetShares drops what a region last said it holds, after its share was minted anew or the region was declared dead.
func (c *Collector) ForgetShares(region string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.ForgetShares(region)
}
