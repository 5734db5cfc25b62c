package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"partidor.dev/partidor/shared/limit"
)

const (
	// MaxMessageBytes bounds what Encode writes and Decode reads, well under the 1 MiB that NATS carries.
	MaxMessageBytes = 256 << 10
	// MaxItems bounds the list in one message.
	MaxItems = 4096
)

// What Decode refuses. Receivers count refusals by these; nothing in a refused message may be used.
var (
	// ErrTooLarge: more than MaxMessageBytes or MaxItems.
	ErrTooLarge = errors.New("message too large")
	// ErrVersion: a major version this code does not read.
	ErrVersion = errors.New("unknown message version")
	// ErrMalformed: no JSON of this shape, or values that no sender of ours produces.
	ErrMalformed = errors.New("malformed message")
)

// Message is what travels: *Usage, *Heartbeat, *Advice, *Changed, *Transfer, *Ack and what joins them.
type Message interface {
	header() *Header
	// check refuses shapes and values that no sender of ours produces.
	check() error
}

// Encode writes m as version Version, whatever its header says. A message above the bounds is an error: split its list
// with Chunks first.
func Encode(m Message) ([]byte, error) {
	m.header().Version = Version
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
	}
	if len(data) > MaxMessageBytes {
		return nil, fmt.Errorf("encode %T: %w: %d bytes, at most %d", m, ErrTooLarge, len(data), MaxMessageBytes)
	}
	return data, nil
}

// Decode reads data into m, which must be a zero message. Unknown fields are ignored. The error is one of ErrTooLarge,
// ErrVersion and ErrMalformed, wrapped.
func Decode(data []byte, m Message) error {
	if len(data) > MaxMessageBytes {
		return fmt.Errorf("decode %T: %w: %d bytes, at most %d", m, ErrTooLarge, len(data), MaxMessageBytes)
	}
	malformed := json.Unmarshal(data, m)
	version := m.header().Version
	if malformed != nil { // perhaps a later version, which gives the fields another shape
		v := struct {
			Version int `json:"v"`
		}{Version}
		_ = json.Unmarshal(data, &v)
		version = v.Version
	}
	if version != Version {
		return fmt.Errorf("decode %T: %w: %d, this code reads %d", m, ErrVersion, version, Version)
	}
	if malformed != nil {
		return fmt.Errorf("decode %T: %w: %w", m, ErrMalformed, malformed)
	}
	if err := errors.Join(m.header().check(), m.check()); err != nil {
		if errors.Is(err, ErrTooLarge) {
			return fmt.Errorf("decode %T: %w", m, err)
		}
		return fmt.Errorf("decode %T: %w: %w", m, ErrMalformed, err)
	}
	return nil
}

func (h *Header) header() *Header { return h }

// Sender is the region that m says it comes from.
func Sender(m Message) string { return m.header().Region }

func (h *Header) check() error {
	if h.Part < 0 || h.Parts < 0 || h.Part > h.Parts {
		return fmt.Errorf("part %d of %d", h.Part, h.Parts)
	}
	if h.Incarnation < 0 || h.Started < 0 {
		return errors.New("negative incarnation or start")
	}
	return errors.Join(limit.ValidateName("region", h.Region), limit.ValidateName("instance", h.Instance))
}

func (m *Usage) check() error {
	if m.ElapsedMillis < 0 {
		return errors.New("negative age")
	}
	// Names are the collector's to judge, key by key: one that it does not know must not cost the report of the others.
	return checkList(m.Keys, func(k *KeyUsage) error {
		if max(len(k.Tenant), len(k.Route)) > maxUsageName {
			return errors.New("name too long")
		}
		if math.IsNaN(k.Tokens) || math.IsInf(k.Tokens, 0) {
			return errors.New("tokens are no number")
		}
		if len(k.Sources) > maxSources {
			return errors.New("too many sources")
		}
		return errors.Join(checkShares(k.Share), k.Refusal.check())
	})
}

// maxSources bounds the kinds of sources, maxWord what a sender calls an outcome or a source.
const (
	maxSources = 16
	maxWord    = 32
)

func (r *Refusal) check() error {
	switch {
	case r == nil:
		return nil
	case max(len(r.Outcome), len(r.Source)) > maxWord || len(r.Limit) > maxUsageName:
		return errors.New("name too long")
	case r.Cost < 0 || r.WaitMillis < 0 || math.IsNaN(r.Tokens) || math.IsInf(r.Tokens, 0):
		return errors.New("refusal with absurd numbers")
	}
	return nil
}

func (m *Heartbeat) check() error { return checkRevision(m.Rules) }

func (m *Changed) check() error { return checkRevision(m.Revision) }

func (m *Advice) check() error {
	if m.Term < 0 || m.Cycle < 0 {
		return errors.New("negative term or cycle")
	}
	return checkList(m.Moves, func(v *Move) error {
		return errors.Join(checkKey(v.Tenant, v.Route), limit.ValidateName("to", v.To),
			checkShares(v.From, v.Target, v.Amount, v.Floor))
	})
}

func (m *Transfer) check() error {
	if m.ReceiverIncarnation < 0 {
		return errors.New("negative incarnation")
	}
	return errors.Join(limit.ValidateName("to", m.To), checkList(m.Rows, func(r *Row) error {
		return errors.Join(checkKey(r.Tenant, r.Route), checkShares(r.Base), checkAmounts(r.Spare), checkCounters(r.Epoch, int64(r.Share), r.Ride, r.Loan))
	}))
}

func (m *Ack) check() error {
	if m.ReceiverIncarnation < 0 {
		return errors.New("negative incarnation")
	}
	return errors.Join(limit.ValidateName("to", m.To), checkList(m.Rows, func(r *AckRow) error {
		return errors.Join(checkKey(r.Tenant, r.Route), checkAmounts(r.Spare), checkCounters(r.Epoch, int64(r.Share), r.Ride, r.Loan, r.Refused))
	}))
}

// maxUsageName bounds names in usage reports, which also speak of keys that no rule can name (a client's address).
const maxUsageName = 2 * limit.MaxNameBytes

// checkList stops at the first bad item: one is enough to refuse the message.
func checkList[T any](items []T, check func(*T) error) error {
	if len(items) > MaxItems {
		return fmt.Errorf("%w: %d items, at most %d", ErrTooLarge, len(items), MaxItems)
	}
	for i := range items {
		if err := check(&items[i]); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

// checkKey allows the reserved route, which has a bucket like any other.
func checkKey(tenant, route string) error {
	if err := limit.ValidateName("tenant", tenant); err != nil {
		return err
	}
	if route == limit.TenantRoute {
		return nil
	}
	return limit.ValidateName("route", route)
}

func checkShares(shares ...limit.Share) error {
	for _, s := range shares {
		if s < 0 || s > limit.Whole {
			return fmt.Errorf("share %d, must be from 0 to %d", s, limit.Whole)
		}
	}
	return nil
}

// checkCounters refuses what a cumulative counter can never be. Shares given add up over a key's life, so they may exceed
// the whole.
func checkCounters(counters ...int64) error {
	for _, n := range counters {
		if n < 0 {
			return errors.New("negative counter")
		}
	}
	return nil
}

func checkRevision(r limit.Revision) error {
	if r.Epoch < 0 || r.Number < 0 {
		return errors.New("negative revision")
	}
	return nil
}
