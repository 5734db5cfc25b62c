package bucket

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/lua"
)

// script is a source with the name Redis knows it by.
type script struct{ source, sha string }

func newScript(source string) script {
	if source == "" {
		source = lua.Take
	}
	sum := sha1.Sum([]byte(source))
	return script{source, hex.EncodeToString(sum[:])}
}

// once is a command that go-redis must not repeat after an error that leaves open whether it was executed.
type once struct{ *redis.StringCmd }

func (once) NoRetry() bool { return true }

// worker carries batches, one after the other.
type worker struct {
	store *Redis
	batch []*call
	args  []any
}

func newWorker(s *Redis) *worker {
	return &worker{store: s, batch: make([]*call, 0, s.opts.BatchSize), args: make([]any, 0, 4*s.opts.BatchSize+8)}
}

// run sends a batch and hands out the answers. In a cluster all buckets of one script call must lie in one slot, so the batch
// becomes one call per slot, pipelined.
func (w *worker) run(batch []*call) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.store.opts.CallTimeout)
	defer cancel()
	if _, ok := w.store.opts.Client.(*redis.ClusterClient); !ok {
		cmd := w.command(ctx, batch, "evalsha", w.store.script.sha)
		began := time.Now()
		_ = w.store.opts.Client.Process(ctx, cmd)
		w.settle(ctx, batch, cmd, began)
		return
	}
	slices.SortStableFunc(batch, func(a, b *call) int { return cmp.Compare(a.slot, b.slot) })
	pipe := w.store.opts.Client.Pipeline()
	var groups [][]*call
	var cmds []once
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].slot == batch[0].slot {
			n++
		}
		cmd := w.command(ctx, batch[:n], "evalsha", w.store.script.sha)
		_ = pipe.Process(ctx, cmd)
		w.args = make([]any, 0, cap(w.args)) // the command keeps its arguments until the pipeline has run
		groups, cmds, batch = append(groups, batch[:n]), append(cmds, cmd), batch[n:]
	}
	began := time.Now()
	_, _ = pipe.Exec(ctx)
	for i, group := range groups {
		w.settle(ctx, group, cmds[i], began)
	}
}

// command is the script call for a batch.
func (w *worker) command(ctx context.Context, batch []*call, verb, script string) once {
	keys := 0
	for _, c := range batch {
		keys += len(c.keys)
	}
	args := append(w.args[:0], verb, script, keys)
	for _, c := range batch {
		for i := range c.keys {
			args = append(args, &c.keys[i])
		}
	}
	fenced := "0"
	if f := w.store.fenced.Load(); f != nil && (*f)() {
		fenced = "1"
	}
	args = append(args, strconv.FormatInt(w.store.lost.Load(), 10),
		strconv.FormatInt(w.store.opts.LossHorizon.Milliseconds(), 10), fenced)
	for _, c := range batch {
		args = append(args, &c.ask)
	}
	w.args = args
	cmd := redis.NewStringCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return once{cmd}
}

// settle hands out the answers of one script call. A server that does not know the script is sent its text, once: it has
// executed nothing.
func (w *worker) settle(ctx context.Context, batch []*call, cmd once, began time.Time) {
	reply, err := cmd.Result()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		again := w.command(ctx, batch, "eval", w.store.script.source)
		_ = w.store.opts.Client.Process(ctx, again)
		reply, err = again.Result()
	}
	var answered redis.Error
	if cluster, ok := w.store.opts.Client.(*redis.ClusterClient); ok && err != nil && !errors.As(err, &answered) {
		// The node may be gone for good: learn in the background who has taken its slots. At most one such question is under
		// way, and none within 200 ms of the last.
		cluster.ReloadState(ctx)
	}
	if err == nil && strings.Count(reply, "\n") != len(batch)-1 {
		err = errors.New("reply does not match the call")
	}
	if w.store.opts.Called != nil {
		w.store.opts.Called(len(batch), time.Since(began), err)
	}
	for _, c := range batch {
		c.batch = len(batch)
		if err != nil {
			c.finish("", err)
			continue
		}
		var line string
		line, reply, _ = strings.Cut(reply, "\n")
		c.finish(line, nil)
	}
}
