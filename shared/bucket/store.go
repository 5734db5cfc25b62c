package bucket

import (
	"context"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Limit is one limit of a request: a key, the rule that the asker's snapshot holds for it, and what to take.
type Limit struct {
	Key  limit.Key
	Rule *limit.Rule
	// Revision is the newest revision that the look-up consulted (rules, tombstones, plans, base split): a store that
	// has seen a newer one decides by that.
	Revision limit.Revision
	// Base is this region's base share, in force while the key has never been moved.
	Base limit.Share
	// Late is the part of Base that a change of the base split has brought so recently that another region may have used it in
	// the same window, or while a bucket fills: a window does not count it yet, and a missing bucket begins without it.
	Late limit.Share
	// Floor is this region's floor, in force where the region is fenced or the key's own rights are lost.
	Floor limit.Share
	// Moved tells that this key is known to have moved: rights that are missing then are lost, not absent.
	Moved bool
	// Cost in whole tokens, at least 0.
	Cost int64
	// Owed is what the asker has admitted of this key without asking (while the store was away): it is taken first, whether
	// or not the request is then admitted, down to −capacity. Negative, it is tokens taken ahead that come back unused:
	// they are added first, up to the capacity in force.
	Owed int64
	// Ahead asks for up to so many whole tokens beyond Cost, for the asker to spend without asking. They are given only to
	// an admitted request, only from what is left after Cost, and the same number of every limit of the call.
	Ahead int64

	// shard of shards, where a store has spread the key over several buckets; shards 0 is one bucket.
	shard, shards int
}

// Counting is the part of Base that a window counts: all of it but what is late.
func (l *Limit) Counting() limit.Share { return l.Base - l.Late }

func (l *Limit) numbers() Numbers {
	n := NumbersOf(l.Rule, l.Base)
	n.Shards = max(1, l.shards)
	return n
}

// Store decides requests against buckets.
//
// Take charges every limit or none and answers for the strictest. It returns within ctx's deadline. An error means that
// no decision was made for the caller; a token may have been lost, never doubled. Implementations are safe for use by
// many goroutines.
type Store interface {
	Take(ctx context.Context, limits []Limit) (limit.Decision, error)
}

// Clock tells the time of day to stores that have no server to ask.
type Clock func() time.Time
