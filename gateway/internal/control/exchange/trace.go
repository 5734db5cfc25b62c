package exchange

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/shared/limit"
)

const (
	// traceFor is how long what happens to a key belongs to the trace that began it, maxTraces how many keys have one.
	traceFor  = 5 * time.Second
	maxTraces = 4096
)

// traces remembers for each key the trace that its next steps belong to: an advice gives share, the row carries the trace to
// the peer, the peer's step continues it.
type traces struct {
	keys map[limit.Key]traced
}

type traced struct {
	ctx   context.Context //nolint:containedctx // the trace is what is kept
	until time.Time
}

func (t *traces) remember(now time.Time, key limit.Key, ctx context.Context) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	if t.keys == nil {
		t.keys = map[limit.Key]traced{}
	}
	if len(t.keys) >= maxTraces {
		for k, v := range t.keys {
			if now.After(v.until) {
				delete(t.keys, k)
			}
		}
		if len(t.keys) >= maxTraces {
			return
		}
	}
	t.keys[key] = traced{ctx, now.Add(traceFor)}
}

// of gives the trace of a key, nil if there is none.
func (t *traces) of(now time.Time, key limit.Key) context.Context {
	v, ok := t.keys[key]
	if !ok {
		return nil
	}
	if now.After(v.until) {
		delete(t.keys, key)
		return nil
	}
	return v.ctx
}
