package hot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"partidor.dev/partidor/gateway/internal/config"
)

// A client of HTTP/2 that asks for an answer and keeps its window closed is given up, stream by stream: it would hold the
// upstream's connection and a place in the route's bound for ever, as its connection takes bytes all the while.
func TestClientWithAClosedWindow(t *testing.T) {
	ended := make(chan struct{})
	f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/items" {
			_, _ = io.WriteString(w, "short")
			return
		}
		defer close(ended)
		for piece := make([]byte, 1<<20); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}, func(c *config.Config) { c.Server.H2C, c.Server.BodyTimeout = true, 300*time.Millisecond })
	conn := f.dial(t)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	paths := map[uint32]string{1: "/v1/ws", 3: "/v1/items", 5: "/v1/items"}
	for _, stream := range []uint32{1, 3, 5} {
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", paths[stream]}, {"x-api-key", "k-t1"}} {
			check(e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
		}
		check(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}))
		if stream == 5 { // This one takes its answer.
			check(framer.WriteWindowUpdate(stream, 100))
		}
	}
	reset := map[uint32]bool{}
	for answered := false; !answered || len(reset) < 2; {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("reset %v, answered %t: %v", reset, answered, err)
		}
		switch fr := frame.(type) {
		case *http2.RSTStreamFrame:
			reset[fr.StreamID] = true
		case *http2.DataFrame:
			answered = answered || fr.StreamID == 5 && fr.StreamEnded()
		case *http2.GoAwayFrame:
			t.Fatalf("the connection ends: %v", fr)
		}
	}
	if !reset[1] || !reset[3] {
		t.Errorf("reset %v, want 1 and 3", reset)
	}
	<-ended
}

// In a conversation a client may have nothing to say for longer than body_timeout: in any call of gRPC, and elsewhere once the
// upstream has begun to answer.
func TestSilenceInAConversation(t *testing.T) {
	for name, contentType := range map[string]string{"gRPC": "application/grpc", "after the answer began": "text/plain"} {
		silence := 20 * time.Millisecond
		if contentType != "application/grpc" {
			silence = 700 * time.Millisecond // in which the answer has to begin
		}
		for _, version := range []int{1, 2} {
			f := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				_ = c.EnableFullDuplex()
				if contentType != "application/grpc" {
					_ = c.Flush()
				}
				b, err := io.ReadAll(r.Body)
				if err != nil {
					panic(http.ErrAbortHandler)
				}
				_, _ = w.Write(b)
			}, func(c *config.Config) { c.Server.H2C, c.Server.BodyTimeout = true, silence })
			transport := &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(version == 1)
			transport.Protocols.SetUnencryptedHTTP2(version == 2)
			body, say := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL+"/v1/upload", body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"X-Api-Key": {"k-t1"}, "Content-Type": {contentType}}
			go func() {
				_, _ = io.WriteString(say, "first ")
				<-time.After(3 * silence)
				_, _ = io.WriteString(say, "second")
				say.Close()
			}()
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatalf("%s over HTTP/%d: %v", name, version, err)
			}
			got, err := io.ReadAll(resp.Body)
			if err != nil && !errors.Is(err, io.EOF) || string(got) != "first second" {
				t.Errorf("%s over HTTP/%d: %d %q, %v", name, version, resp.StatusCode, got, err)
			}
			cancel()
			transport.CloseIdleConnections()
		}
	}
}
