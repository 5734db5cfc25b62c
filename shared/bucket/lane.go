package bucket

import (
	"context"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/limit"
)

// call is one decision on its way to Redis. It is encoded by its caller, carried by a worker, and belongs to whichever of
// them lets go last: a caller that gives up leaves it to the garbage collector.
type call struct {
	ctx  context.Context
	keys []string
	ask  string
	slot int

	done  chan struct{}
	reply string
	err   error
	batch int // decisions that travelled together

	// buf and ends, of the keys in it, are room to encode in.
	buf  []byte
	ends []int
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// newCall encodes limits. Their keys and the asks are parts of one text, so that encoding allocates once.
func newCall(ctx context.Context, limits []Limit, generation int64) *call {
	c := calls.Get().(*call)
	c.ctx, c.err, c.reply = ctx, nil, ""
	b, ends := c.buf[:0], c.ends[:0]
	for i := range limits {
		b = limits[i].appendName(b)
		ends = append(ends, len(b))
		if limits[i].Rule.Algorithm == limit.SlidingWindowLog {
			b = append(limits[i].appendName(b), ":log"...)
			ends = append(ends, len(b))
		}
	}
	names := len(b)
	for i := range limits {
		if i > 0 {
			b = append(b, ';')
		}
		b = appendAsk(b, &limits[i], generation)
	}
	text := string(b)
	c.keys, c.ask = c.keys[:0], text[names:]
	begin := 0
	for _, end := range ends {
		c.keys = append(c.keys, text[begin:end])
		begin = end
	}
	c.buf, c.ends = b, ends
	return c
}

func (c *call) finish(reply string, err error) {
	c.reply, c.err = reply, err
	c.done <- struct{}{}
}

func (c *call) free() {
	c.ctx, c.ask, c.reply, c.err = nil, "", "", nil
	clear(c.keys)
	calls.Put(c)
}

// lane is the way to one node: a bounded queue and a few workers, each of which takes what is there, at most a batch.
type lane struct {
	store *Redis
	queue chan *call
}

// lanes holds a lane per node, made when first needed. Without a cluster there is one.
type lanes struct {
	store  *Redis
	mu     sync.RWMutex
	byNode map[string]*lane
	closed bool
	homes  *homes
}

func (ls *lanes) send(ctx context.Context, c *call) error {
	node := ""
	if cluster, ok := ls.store.opts.Client.(*redis.ClusterClient); ok {
		c.slot = keySlot(c.keys[0])
		master, err := cluster.MasterForKey(ctx, c.keys[0])
		if err != nil {
			return err
		}
		node = master.Options().Addr
		ls.homes.note(c.slot, node)
	}
	l := ls.find(node)
	if l == nil {
		return ErrClosed
	}
	select {
	case l.queue <- c:
		return nil
	default:
		return ErrBusy
	}
}

func (ls *lanes) find(node string) *lane {
	ls.mu.RLock()
	l, closed := ls.byNode[node], ls.closed
	ls.mu.RUnlock()
	if l != nil || closed {
		return l
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l = ls.byNode[node]; l != nil || ls.closed {
		return l
	}
	if ls.byNode == nil {
		ls.byNode = make(map[string]*lane)
	}
	l = &lane{store: ls.store, queue: make(chan *call, ls.store.opts.Queue)}
	ls.byNode[node] = l
	for range ls.store.opts.Workers {
		ls.store.wg.Go(l.work)
	}
	return l
}

// close lets no new lane begin and tells the workers to end.
func (ls *lanes) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.closed {
		ls.closed = true
		close(ls.store.quit)
	}
}

func (l *lane) work() {
	w := newWorker(l.store)
	for {
		select {
		case <-l.store.quit:
			l.refuse()
			return
		case c := <-l.queue:
			// Let the callers that can run come first: the batch they join costs what one without them would.
			runtime.Gosched()
			w.run(l.gather(c, w.batch[:0]))
		}
	}
}

// gather adds to first what else is waiting, at most a batch, and leaves out callers that have given up already: nothing is
// charged for them.
func (l *lane) gather(first *call, batch []*call) []*call {
	for c := first; ; {
		if err := c.ctx.Err(); err != nil {
			c.finish("", err)
		} else {
			batch = append(batch, c)
		}
		if len(batch) == l.store.opts.BatchSize {
			return batch
		}
		select {
		case c = <-l.queue:
		default:
			return batch
		}
	}
}

// refuse answers what is still waiting when the store closes.
func (l *lane) refuse() {
	for {
		select {
		case c := <-l.queue:
			c.finish("", ErrClosed)
		default:
			return
		}
	}
}
