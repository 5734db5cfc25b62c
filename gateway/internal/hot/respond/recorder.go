package respond

import (
	"bufio"
	"net"
	"net/http"
)

// Recorder notes what was answered. Flushing, deadlines and full duplex reach the writer below through Unwrap, as
// http.ResponseController looks for them.
type Recorder struct {
	http.ResponseWriter
	// Status is 0 until the answer has begun, and 101 once the connection was taken over.
	Status int
	// Bytes of the body.
	Bytes int64
}

// WriteHeader notes the final status; informational ones pass.
func (w *Recorder) WriteHeader(status int) {
	if w.Status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Recorder) Write(p []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.Bytes += int64(n)
	return n, err
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
