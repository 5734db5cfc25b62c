package hot

import (
	"io"
	"net/http"
	"time"

	"partidor.dev/partidor/gateway/internal/hot/respond"
)

// acceptBody refuses a body that is announced as too large, and bounds one that is not.
func (x *exchange) acceptBody() bool {
	most := x.route.MaxBodyBytes
	if most == 0 {
		return true
	}
	if x.in.ContentLength > most {
		x.refuse(respond.BodyTooLarge, 0)
		return false
	}
	if x.in.ContentLength != 0 {
		x.in.Body = http.MaxBytesReader(x.recorder.ResponseWriter, x.in.Body, most)
	}
	return true
}

// How much of a refused body is read, and for how long, after the refusal was sent: clients that write all of a request
// before they read would otherwise meet a reset connection instead of the answer. net/http reads shorter bodies itself.
const (
	drainFrom  = 256 << 10
	drainBytes = 8 << 20
	drainTime  = time.Second
)

// linger prepares for an answer before the end of a large body, and tells whether drain is to follow. A client that
// waits for 100 Continue sends none, and HTTP/2 can refuse a body by itself.
func linger(w http.ResponseWriter, r *http.Request) bool {
	if r.ProtoMajor != 1 || len(r.Header["Expect"]) > 0 || r.ContentLength >= 0 && r.ContentLength <= drainFrom {
		return false
	}
	if http.NewResponseController(w).EnableFullDuplex() != nil {
		return false
	}
	w.Header()["Connection"] = []string{"close"}
	return true
}

// drain sends the answer off and reads what the client is still sending, within bounds.
func drain(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	if c.Flush() != nil || c.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	// Whatever ends it, the connection is closed next.
	_, _ = io.CopyN(io.Discard, r.Body, drainBytes)
}
