package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/lua"
	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/rights"
)

// Record is what a Redis knows of its own life.
type Record struct {
	// Self is the region's incarnation; 0 means that there is none: the data is lost, or this Redis has never lived.
	Self  int64
	Phase rights.Phase
	// Run is the server's run id when the incarnation began; another one now means that the server was restarted, or that
	// another one has taken over, so that its data may be older than what has been said to the world.
	Run string
	// Peer is, after VoidPeer, Vote and Agree, the peer's lowest incarnation that is not void.
	Peer int64
	// Agreed, after Agree: the peer has not been answered for long enough, so that its lease is over.
	Agreed bool
}

// sampled is how many slots one look at a cluster skips: every master holds longer runs of slots.
const sampled = 128

// Record reads the region's record. In a cluster a part of the records is read, and one that is missing counts.
func (s *Store) Record(ctx context.Context) (Record, error) {
	return s.region(ctx, s.records.keys(sampled), "read")
}

// BeginRegion starts a new incarnation of the whole region, if the number is higher than the present one.
func (s *Store) BeginRegion(ctx context.Context, number int64, run string) (Record, error) {
	return s.region(ctx, s.records.keys(1), "begin", strconv.FormatInt(number, 10), run)
}

// ActivateRegion ends re-learning under the number, unless a peer lives under a higher number by now than the one that answered, and
// refuses lower ones from then on.
func (s *Store) ActivateRegion(ctx context.Context, number int64, answered map[string]int64) (Record, error) {
	args := []any{"active", strconv.FormatInt(number, 10)}
	for peer, incarnation := range answered {
		args = append(args, peer, strconv.FormatInt(incarnation, 10))
	}
	return s.region(ctx, s.records.keys(1), args...)
}

// VoidPeer makes every step from now on refuse incarnations of the peer below the number.
func (s *Store) VoidPeer(ctx context.Context, peer string, number int64) (Record, error) {
	return s.region(ctx, s.records.keys(1), "void", peer, strconv.FormatInt(number, 10))
}

// Vote notes that a renewal of a peer's lease is about to be answered. It must not be if Peer is then above number: that
// incarnation is void. fences tells whether all of the peer keeps to its floor when its lease is over.
func (s *Store) Vote(ctx context.Context, peer string, number int64, fences bool) (Record, error) {
	f := "0"
	if fences {
		f = "1"
	}
	return s.region(ctx, s.records.first(), "vote", peer, strconv.FormatInt(number, 10), f)
}

// Agree voids the peer's incarnations below number if it fences and no renewal of it has been answered here for longer than
// silence. Where it has agreed, VoidPeer makes every other script know. A peer that was never answered is not agreed upon.
func (s *Store) Agree(ctx context.Context, peer string, number int64, silence time.Duration) (Record, error) {
	return s.region(ctx, s.records.first(), "agree", peer, strconv.FormatInt(number, 10), strconv.FormatInt(silence.Milliseconds(), 10))
}

// recordBatch bounds one pipeline: each must be written and answered within the client's time for one operation, also by a busy
// server, and a cluster has a record per slot.
const recordBatch = 512

// regionScript is run by its digest: sixteen thousand copies of its text would be 30 MB.
var regionScript = redis.NewScript(lua.Region)

func (s *Store) region(ctx context.Context, keys []string, args ...any) (Record, error) {
	var replies []*redis.Cmd
	for chunk := range slices.Chunk(keys, recordBatch) {
		some := s.inPipeline(ctx, chunk, args, redis.Pipeliner.EvalSha, regionScript.Hash())
		if slices.ContainsFunc(some, func(c *redis.Cmd) bool { return redis.HasErrorPrefix(c.Err(), "NOSCRIPT") }) {
			// Every change is one that may be repeated.
			if regionScript.Load(ctx, s.client).Err() == nil {
				some = s.inPipeline(ctx, chunk, args, redis.Pipeliner.EvalSha, regionScript.Hash())
			} else { // a user without SCRIPT commands; afterwards the cache has it
				some = s.inPipeline(ctx, chunk, args, redis.Pipeliner.Eval, lua.Region)
			}
		}
		replies = append(replies, some...)
	}
	var oldest Record
	for i, c := range replies {
		reply, err := c.StringSlice()
		if err != nil {
			s.unreached(ctx, err)
			return Record{}, fmt.Errorf("region's record, %s: %w", args[0], err)
		}
		r, err := parseRecord(reply)
		if err != nil {
			return Record{}, fmt.Errorf("region's record: %w", err)
		}
		r.Peer = max(r.Peer, oldest.Peer)
		if i == 0 || r.Self < oldest.Self || r.Self == oldest.Self && r.Phase > oldest.Phase {
			oldest = r
		}
	}
	return oldest, nil
}

// inPipeline runs the script for each record.
func (s *Store) inPipeline(ctx context.Context, keys []string, args []any, by eval, script string) []*redis.Cmd {
	pipe := s.client.Pipeline()
	replies := make([]*redis.Cmd, len(keys))
	for i, k := range keys {
		replies[i] = by(pipe, ctx, script, []string{k}, args...)
	}
	_, _ = pipe.Exec(ctx) // every command carries its own error
	return replies
}

func parseRecord(reply []string) (Record, error) {
	if len(reply) != 5 {
		return Record{}, fmt.Errorf("%d fields", len(reply))
	}
	self, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return Record{}, fmt.Errorf("incarnation: %w", err)
	}
	phase, ok := rights.ParsePhase(reply[1])
	if !ok {
		return Record{}, fmt.Errorf("phase %q", reply[1])
	}
	peer, err := strconv.ParseInt(reply[3], 10, 64)
	if err != nil {
		return Record{}, fmt.Errorf("peer's incarnation: %w", err)
	}
	return Record{Self: self, Phase: phase, Run: reply[2], Peer: peer, Agreed: reply[4] == "1"}, nil
}

// RunID names the life of the server, or of all masters of a cluster together. It is empty where a server does not tell.
func (s *Store) RunID(ctx context.Context) (string, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return runID(ctx, s.client)
	}
	var mu sync.Mutex
	var ids []string
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		id, err := runID(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, id)
		return err
	})
	slices.Sort(ids)
	return strings.Join(ids, "+"), err
}

func runID(ctx context.Context, c redis.Cmdable) (string, error) {
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		if refused := redis.Error(nil); errors.As(err, &refused) {
			return "", nil // it does not know the section
		}
		return "", fmt.Errorf("run id: %w", err)
	}
	_, rest, ok := strings.Cut(info, "run_id:")
	if !ok {
		return "", nil
	}
	id, _, _ := strings.Cut(rest, "\r\n")
	return id, nil
}

// first is the record by which the processes of a region vote as one.
func (r *records) first() []string { return r.keys(bucket.Slots) }

// keys names the records, in a cluster those of every n-th slot.
func (r *records) keys(n int) []string {
	if !r.cluster {
		return []string{recordKey}
	}
	r.once.Do(r.fill)
	keys := make([]string, 0, bucket.Slots/n)
	for slot := 0; slot < bucket.Slots; slot += n {
		keys = append(keys, recordKey+":{"+r.tags[slot]+"}")
	}
	return keys
}
