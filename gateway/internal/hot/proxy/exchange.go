package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"partidor.dev/partidor/gateway/internal/hot/respond"
)

// Observer hears how one request fares. Its methods are called by the goroutine that forwards the request, one at a time.
type Observer interface {
	// Response is called with the upstream's headers before they go to the client, also for 101.
	Response(h http.Header, status int)
	// Attempt is called before the request is sent to a target, Answered when the headers of the answer are there
	// (status) or never will be (err). There are more than one pair where the request is repeated.
	Attempt(out *http.Request, target string)
	Answered(status int, err error)
	// Failed answers the client where no answer of the upstream can be passed on. problem is nil where the client has
	// left.
	Failed(w http.ResponseWriter, problem *respond.Problem, cause error)
}

// exchange is what a route's transport needs to know of the request it carries. It is that request's context, too: one that
// carried it as a value would be an allocation more.
type exchange struct {
	context.Context // what it descends from
	request         *Request
	client          context.Context // Ends when the client leaves.
	path            string          // Escaped, as the upstream is to see it.
	upgrade         bool
	target          *target
	body            *countedBody
	words           [3]string // of the headers in which the gateway speaks
}

type exchangeKey struct{}

// Value finds the exchange in itself and in what descends from it.
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// hold counts the request at t and no longer at the target before.
func (x *exchange) hold(t *target) {
	x.release()
	x.target = t
}

func (x *exchange) release() {
	if x.target != nil {
		x.target.release()
		x.target = nil
	}
}

// gone tells that the client has left: its connection has ended, or its body has broken off. Neither is the upstream's
// doing.
func (x *exchange) gone() bool { return x.client.Err() != nil || x.bodyError() != nil }

func (x *exchange) bodyRead() bool { return x.body != nil && x.body.started.Load() }

// bodyError is why the client's body could not be read to its end; nil if it could, as far as is known.
func (x *exchange) bodyError() error {
	if x.body == nil {
		return nil
	}
	if err := x.body.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// countedBody notes that somebody has begun to read and what went wrong, and is not closed by a transport that failed to
// connect: a body that was not begun can still be sent to another target. ReverseProxy closes what lies beneath when the
// request ends.
type countedBody struct {
	io.Reader
	started atomic.Bool
	failed  atomic.Pointer[error]
	ended   func() // Called at the body's end; nil for nothing to do.
}

func (b *countedBody) Read(p []byte) (int, error) {
	b.started.Store(true)
	n, err := b.Reader.Read(p)
	switch {
	case err == nil:
	case !errors.Is(err, io.EOF):
		b.failed.Store(&err)
	case b.ended != nil:
		b.ended()
	}
	return n, err
}

// Close does nothing.
func (b *countedBody) Close() error { return nil }
