package respond

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"
)

// Recorder notes what was answered. Flushing, deadlines and full duplex reach the writer below through Unwrap, as
// http.ResponseController looks for them.
type Recorder struct {
	http.ResponseWriter
	// Status is 0 until the answer has begun, and 101 once the connection was taken over.
	Status int
	// Bytes of the body.
	Bytes int64
	// Stall is how long the client may take none of what is written; 0 for no bound of the recorder's. It is for streams of
	// HTTP/2, whose clients can close their window while the connection itself takes bytes.
	Stall time.Duration

	timer *time.Timer // of a write under way; nil until there was one
	mu    sync.Mutex
	done  bool // The writer is not to be used any more.
}

// WriteHeader notes the final status; informational ones pass, but for 100: the server below sends its own when the body is first
// read, and what an upstream says of itself, passed on beside that, would be a second one.
func (w *Recorder) WriteHeader(status int) {
	if status == http.StatusContinue {
		return
	}
	if w.Status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Recorder) Write(p []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	w.watch()
	n, err := w.ResponseWriter.Write(p)
	w.unwatch()
	w.Bytes += int64(n)
	return n, err
}

// FlushError sends what was written on its way.
func (w *Recorder) FlushError() error {
	w.watch()
	defer w.unwatch()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Done is called when the answer is complete, before the server sends the last of it.
func (w *Recorder) Done() {
	if w.Stall > 0 {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.Stall))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
}

func (w *Recorder) watch() {
	switch {
	case w.Stall <= 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.Stall, w.giveUp)
	default:
		w.timer.Reset(w.Stall)
	}
}

func (w *Recorder) unwatch() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// giveUp ends the stream, and with it the write that waits for the client.
func (w *Recorder) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(-time.Second))
	}
}

// Unwrap is for http.ResponseController.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack hands the connection over. Bytes that the client sent right behind its request have been read into the
// server's buffer already: a connection that is read past that buffer would lose them, so it comes with them in front.
func (w *Recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, rw, err
	}
	w.Status = http.StatusSwitchingProtocols
	if n := rw.Reader.Buffered(); n > 0 {
		early, err := rw.Reader.Peek(n)
		if err != nil {
			return conn, rw, err
		}
		conn = &earlyConn{Conn: conn, early: append([]byte(nil), early...)}
		// Whoever reads the buffer instead of the connection must not meet the same bytes twice.
		rw.Reader = bufio.NewReader(conn)
	}
	return conn, rw, nil
}

// earlyConn reads what came early before anything else.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early)
	c.early = c.early[n:]
	return n, nil
}

// CloseWrite ends our direction only, where the connection can.
func (c *earlyConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
