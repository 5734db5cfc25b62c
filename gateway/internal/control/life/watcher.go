package life

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	mnoop "go.opentelemetry.io/otel/metric/noop"

	"partidor.dev/partidor/lua"
)

// recordKey names the record of lua/life.lua. It lies among the buckets, where the gateway's user may write. In a cluster every
// master has its own: see node.go.
const recordKey = "rl:@life"

const (
	// every is the time between two looks.
	every = time.Second
	// within bounds one look.
	within = 500 * time.Millisecond
)

// Options of a Watcher; none is needed.
type Options struct {
	Logger *slog.Logger
	Meter  metric.Meter
}

// Watcher watches one Redis. Its Greet belongs into the client's options, its Run into the background. Safe for concurrent use.
type Watcher struct {
	opts   Options
	script *redis.Script
	losses metric.Int64Counter
	room   atomic.Pointer[room]

	mu   sync.Mutex
	seen map[string]sighting // by the record's name
	at   time.Time           // of the latest loss
	told []func(at time.Time)
}

// sighting is what one record last said.
type sighting struct {
	run  string // run id of the server
	lost string
}

// New makes a watcher that has seen nothing yet.
func New(o Options) (*Watcher, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = mnoop.NewMeterProvider().Meter("")
	}
	losses, err := o.Meter.Int64Counter("partidor.redis.losses", metric.WithUnit("{loss}"),
		metric.WithDescription("Times that the regional Redis was found to have lost data."))
	if err != nil {
		return nil, err
	}
	losses.Add(context.Background(), 0)
	w := &Watcher{opts: o, script: redis.NewScript(lua.Life), losses: losses, seen: map[string]sighting{}}
	return w, w.observeRoom()
}

// Tell has f told of each loss, and of the last one known at once: when it was, by Redis's clock. f is called from any goroutine,
// before another call is sent to the server that showed the loss; it must neither wait nor call the watcher.
func (w *Watcher) Tell(f func(at time.Time)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, f)
	if !w.at.IsZero() {
		f(w.at)
	}
}

// commander is a client or one connection of it.
type commander interface {
	redis.Scripter
	Info(ctx context.Context, section ...string) *redis.StringCmd
	ClusterNodes(ctx context.Context) *redis.StringCmd
}

// errNews refuses the connection on which a loss was found: the call that opened it was made up before that was known.
var errNews = errors.New("redis has lost data: this call was made up for its earlier life")

// errUnreadable is an answer that is none of the script's.
var errUnreadable = errors.New("unreadable answer")

// Greet looks at the server behind a new connection. It refuses the one on which it finds a loss, and every one that still owes an
// answer: the next command would take that for its own, and each one after it its predecessor's. A server that answers that it
// cannot be looked at, for want of a permission say, still decides.
func (w *Watcher) Greet(ctx context.Context, conn *redis.Conn) error {
	err := w.look(ctx, conn)
	var answered redis.Error
	if errors.As(err, &answered) || errors.Is(err, errUnreadable) {
		return nil
	}
	return err
}

// Run looks once a second until ctx ends.
func (w *Watcher) Run(ctx context.Context, client redis.UniversalClient) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			bounded, cancel := context.WithTimeout(ctx, within)
			w.lookAll(bounded, client)
			if looks%roomEvery == 0 {
				w.measure(bounded, client)
			}
			cancel()
		}
	}
}

// look compares the server's run with the record's. Its error is errNews where that told of a loss.
func (w *Watcher) look(ctx context.Context, c commander) error {
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("ask redis who it is: %w", err)
	}
	run := field(info, "run_id")
	if run == "" {
		return nil // not a server that has lives
	}
	key := recordKey
	if field(info, "redis_mode") == "cluster" {
		if key, err = ownRecord(ctx, c); err != nil || key == "" {
			return err
		}
	}
	w.mu.Lock()
	known := w.seen[key]
	w.mu.Unlock()
	lost, err := w.script.Run(ctx, c, []string{key}, run, known.run).Text()
	if err != nil {
		return fmt.Errorf("compare redis's life: %w", err)
	}
	ms, err := strconv.ParseFloat(lost, 64)
	if err != nil {
		return fmt.Errorf("compare redis's life: %w %.40q", errUnreadable, lost)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	news := lost != w.seen[key].lost && ms > 0
	w.seen[key] = sighting{run, lost}
	if !news {
		return nil
	}
	if at := time.UnixMicro(int64(ms * 1000)); at.After(w.at) {
		w.at = at
	}
	w.losses.Add(ctx, 1)
	w.opts.Logger.WarnContext(ctx, "redis has begun another life: buckets that are missing start empty", "at", w.at, "run", run)
	for _, f := range w.told {
		f(w.at)
	}
	return errNews
}

// field is the value of one line of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
