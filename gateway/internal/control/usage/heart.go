package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

const (
	// beatsPerPeriod heartbeats may be lost before an instance counts as gone.
	beatsPerPeriod = 3
	// What a subscription may hold back; a gateway that falls behind drops heartbeats rather than growing.
	pendingMessages, pendingBytes = 8192, 4 << 20
)

// Vitals is what a heartbeat says of its instance.
type Vitals struct {
	Rules           limit.Revision
	Stale, Degraded bool
}

// Heart publishes heartbeats and hears those of the region.
type Heart struct {
	conn     *nats.Conn
	who      Identity
	interval time.Duration
	members  *Members
	vitals   func() Vitals
	logger   *slog.Logger
	sequence uint64
	doubled  bool // another uses our name; of the subscription's goroutine
}

// Period is how long an instance may be silent before it counts as gone.
func Period(interval time.Duration) time.Duration { return beatsPerPeriod * interval }

// NewHeart beats every interval and keeps members, whose period should be Period(interval). vitals is called for each beat.
func NewHeart(conn *nats.Conn, who Identity, interval time.Duration, members *Members, vitals func() Vitals, logger *slog.Logger) *Heart {
	return &Heart{conn: conn, who: who, interval: interval, members: members, vitals: vitals, logger: logger}
}

// Run beats until ctx ends, then says that the instance drains.
func (h *Heart) Run(ctx context.Context) error {
	sub, err := h.conn.Subscribe(wire.SubjectHeartbeat(h.who.Region), h.hear)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection may be gone already
	if err := sub.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		return fmt.Errorf("bound heartbeats: %w", err)
	}
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	for {
		h.beat(ctx, false)
		select {
		case <-ctx.Done():
			h.beat(ctx, true)
			return nil
		case <-tick.C:
			h.members.Tick(h.age())
		}
	}
}

func (h *Heart) age() time.Duration { return time.Since(h.who.Started) }

func (h *Heart) beat(ctx context.Context, draining bool) {
	if !h.conn.IsConnected() {
		return // what waits in the client's buffer would speak of the past
	}
	v := h.vitals()
	h.sequence++
	b := wire.Heartbeat{Header: h.who.header(), Rules: v.Rules, Stale: v.Stale, Degraded: v.Degraded, Draining: draining}
	b.Sequence = h.sequence
	data, err := wire.Encode(&b)
	if err == nil {
		err = h.conn.Publish(wire.SubjectHeartbeat(h.who.Region), data)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		h.logger.WarnContext(ctx, "heartbeat not sent", "error", err)
	}
}

func (h *Heart) hear(m *nats.Msg) {
	var b wire.Heartbeat
	if err := wire.Decode(m.Data, &b); err != nil || b.Region != h.who.Region {
		return // counted where it matters: by the collector, who hears the same
	}
	if b.Instance == h.who.Instance && b.Started > h.who.Started.UnixMilli() {
		if !h.doubled {
			h.logger.Error("another gateway of this region uses this instance's name: reports of both are muddled", "instance", b.Instance)
		}
		h.doubled = true
		return
	}
	h.members.Hear(h.age(), &b)
}
