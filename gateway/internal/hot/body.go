package hot

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"partidor.dev/partidor/gateway/internal/hot/respond"
)

// acceptBody refuses a body that is announced as too large.
func (x *exchange) acceptBody() bool {
	if most := x.route.MaxBodyBytes; most > 0 && x.in.ContentLength > most {
		x.refuse(respond.BodyTooLarge, 0)
		return false
	}
	return true
}

// body is the client's body, bounded in silence and in size; nil where there is none. The request itself keeps the body
// that net/http gave it: by that net/http knows whether a client still waits for 100 Continue.
func (x *exchange) body() io.ReadCloser {
	if x.in.ContentLength == 0 || x.in.Body == nil {
		return nil
	}
	x.prompt = &promptBody{
		ReadCloser: x.in.Body,
		control:    http.NewResponseController(x.recorder.ResponseWriter),
		silence:    x.generation.silence,
	}
	if total := x.route.Timeouts.Total; total > 0 {
		x.prompt.end = time.Now().Add(total)
	}
	if respond.IsGRPC(x.in) {
		x.prompt.stream()
	}
	if most := x.route.MaxBodyBytes; most > 0 {
		return http.MaxBytesReader(x.recorder.ResponseWriter, x.prompt, most)
	}
	return x.prompt
}

// promptBody ends with os.ErrDeadlineExceeded when the client has been silent for too long in the middle of its body:
// else a few slow clients could hold an upstream's connections for ever.
type promptBody struct {
	io.ReadCloser
	control *http.ResponseController
	silence time.Duration
	end     time.Time // of the whole exchange; zero where nothing bounds it
	ended   atomic.Bool

	mu   sync.Mutex // Held while a deadline is set.
	free bool       // Silence is not bounded any more.
}

func (b *promptBody) Read(p []byte) (int, error) {
	b.bound()
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
		b.release()
	}
	return n, err
}

// bound sets the deadline of the next read. Writers that know no deadlines have no clients that are slow.
func (b *promptBody) bound() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free {
		return
	}
	deadline := time.Now().Add(b.silence)
	if !b.end.IsZero() && b.end.Before(deadline) {
		deadline = b.end // A transport that gives up waits for a read under way: the context's deadline alone ends nothing.
	}
	_ = b.control.SetReadDeadline(deadline)
}

// stream lets the client be silent for as long as it likes, up to the end of the exchange: in a conversation, once the
// upstream answers or in any call of gRPC, it may have nothing to say for hours.
func (b *promptBody) stream() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = true
	_ = b.control.SetReadDeadline(b.end)
}

// release takes all bounds away, for what comes behind the body: the next request, or the client's leaving. They are also
// taken away behind an answer that came before the body's end: net/http then reads the rest itself, and a deadline
// that passed meanwhile would make it take what is left for the next request.
func (b *promptBody) release() { _ = b.control.SetReadDeadline(time.Time{}) }
