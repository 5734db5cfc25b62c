package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// ErrUnreadable is why a key's rights cannot be read although Redis answers: the key is of another type, or mistyped.
var ErrUnreadable = errors.New("unreadable")

// Read gives the state of keys as it stands, without settling or changing anything. A key that has never moved, or whose
// rights are missing, comes back with Moved false; one with unreadable rights with ErrUnreadable.
func (s *Store) Read(ctx context.Context, keys []limit.Key) ([]rights.State, []error) {
	pipe := s.client.Pipeline()
	commands := make([]*redis.MapStringStringCmd, len(keys))
	for i, k := range keys {
		commands[i] = pipe.HGetAll(ctx, k.Redis())
	}
	_, _ = pipe.Exec(ctx) // every command carries its own error
	states, errs := make([]rights.State, len(keys)), make([]error, len(keys))
	for i, c := range commands {
		fields, err := c.Result()
		if err == nil {
			if states[i], err = parseState(fields); err != nil {
				err = fmt.Errorf("%w: %w", ErrUnreadable, err)
			}
		} else if redis.HasErrorPrefix(err, "WRONGTYPE") {
			err = fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if err != nil {
			s.unreached(ctx, err)
			errs[i] = fmt.Errorf("read rights of %s: %w", keys[i], err)
		}
	}
	return states, errs
}

// parseState reads the fields of a bucket's hash.
func parseState(f map[string]string) (rights.State, error) {
	var s rights.State
	if f["share"] == "" || f["base"] == "" {
		return s, nil
	}
	p := parser{fields: make([]string, 1)}
	get := func(name string) int {
		p.fields[0] = f[name]
		return 0
	}
	var err error
	if s.Numbers, err = bucket.ParseNumbers(f["rule"]); err != nil {
		return s, err
	}
	if s.Revision, err = limit.ParseRevision(f["rev"]); err != nil {
		return s, err
	}
	ts, err := strconv.ParseFloat(f["ts"], 64)
	if err != nil {
		return s, fmt.Errorf("ts: %w", err)
	}
	s.At = int64(ts*1000 + 0.5)
	s.Tokens = p.number(get("tokens"))
	s.Moved = true
	s.Share = limit.Share(p.integer(get("share")))
	s.Base = limit.Share(p.integer(get("base")))
	s.Floor = limit.Share(p.integer(get("floor")))
	s.Incarnation = p.integer(get("incarnation"))
	if f["waiting"] != "" {
		s.Waiting, s.Due = limit.Share(p.integer(get("waiting"))), p.integer(get("due"))
	}
	if f["phase"] != "" {
		var ok bool
		if s.Phase, ok = rights.ParsePhase(f["phase"]); !ok {
			return s, fmt.Errorf("phase %q", f["phase"])
		}
	}
	for name := range f {
		region, ok := strings.CutPrefix(name, "peer:")
		if !ok {
			continue
		}
		w := p.words(get(name), 4)
		s.Pairs = append(s.Pairs, rights.Pair{
			Region: region, Incarnation: w[0], Epoch: w[1], Opened: w[2] == 1, Answered: w[3] == 1,
			Out: p.sent(get("out:" + region)), In: p.received(get("in:" + region)), Acked: p.received(get("ack:" + region)),
		})
	}
	for _, share := range []limit.Share{s.Share, s.Base, s.Floor, s.Waiting} {
		if share < 0 || share > limit.Whole {
			return s, fmt.Errorf("share %d, must be from 0 to %d", share, limit.Whole)
		}
	}
	if math.IsNaN(s.Tokens) || math.IsInf(s.Tokens, 0) {
		return s, fmt.Errorf("tokens %g", s.Tokens)
	}
	slices.SortFunc(s.Pairs, func(a, b rights.Pair) int { return strings.Compare(a.Region, b.Region) })
	return s, p.err
}
