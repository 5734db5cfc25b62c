package hot

import (
	"io"
	"net/http"
	"time"

	"partidor.dev/partidor/gateway/internal/hot/respond"
)

// refuse answers in the gateway's own name, at once, however much of the request's body is still to come.
func (x *exchange) refuse(p *respond.Problem, wait time.Duration) {
	a := respond.Answer{Problem: p, Wait: wait}
	if x.route != nil {
		a.Route = &x.route.Route.Route
	}
	if x.decided {
		a.Decision = &x.decision
	}
	pending := x.rest()
	if pending == closePending || pending == drainPending {
		x.recorder.Header()["Connection"] = []string{"close"}
	}
	x.generation.responder.Write(&x.recorder, x.in, a)
	if pending == drainPending || pending == streamPending {
		x.drain()
	}
}

// pending is what has to be done about a body that has not been read to its end when the answer is sent.
type pending uint8

const (
	// nothingPending: there is no rest, or net/http knows best what to do with it.
	nothingPending pending = iota
	// closePending: the connection must not be used again, as what comes next would be taken for a request.
	closePending
	// drainPending: besides, the rest is read for a while, as clients that write all of a request before they read would
	// otherwise meet a reset connection instead of the answer.
	drainPending
	// streamPending: the rest is read for a while on a stream of HTTP/2, whose connection goes on. A stream that is reset, as
	// net/http would at once, takes the answer away from clients that are still writing, such as curl before 8.
	streamPending
)

// The bounds of reading a refused body.
const (
	// shortBody is the longest body that is read before the answer, so that its connection can be kept: most often it
	// has arrived with the head.
	shortBody  = 256 << 10
	shortTime  = 50 * time.Millisecond
	drainBytes = 8 << 20
	drainTime  = time.Second
)

// rest deals with the body of a request that is about to be refused. Left to itself, net/http would read all of a short
// body first and then answer, however long that takes. A client that waits for 100 Continue sends none. A gRPC call's answer
// has to end with its headers, and its clients know how to be refused.
func (x *exchange) rest() pending {
	r := x.in
	if r.ContentLength == 0 || len(r.Header["Expect"]) > 0 || x.prompt != nil && x.prompt.ended.Load() {
		return nothingPending
	}
	if r.ProtoMajor == 2 && !respond.IsGRPC(r) {
		return streamPending
	}
	if r.ProtoMajor != 1 {
		return nothingPending
	}
	c := http.NewResponseController(&x.recorder)
	if x.prompt != nil {
		// The way upstream may still be reading. It has the bound on silence, and so has net/http after it.
		if c.SetReadDeadline(time.Now().Add(drainTime)) != nil {
			return nothingPending
		}
		return closePending
	}
	if r.ContentLength > 0 && r.ContentLength <= shortBody {
		if c.SetReadDeadline(time.Now().Add(shortTime)) != nil {
			return nothingPending
		}
		if n, _ := io.Copy(io.Discard, r.Body); n == r.ContentLength {
			_ = c.SetReadDeadline(time.Time{})
			return nothingPending
		}
	}
	if c.EnableFullDuplex() != nil {
		return nothingPending
	}
	return drainPending
}

// drain sends the answer off and reads what the client is still sending, within bounds.
func (x *exchange) drain() {
	c := http.NewResponseController(&x.recorder)
	if c.Flush() != nil || c.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	// However it ends, the connection ends with it.
	_, _ = io.CopyN(io.Discard, x.in.Body, drainBytes)
}
