package hot

import (
	"bytes"
	"io"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/limit"
)

// request-path 104 over HTTP/2: the answer comes before the body's end, and the stream is not reset under a client that goes
// on writing, as some clients then drop the answer. The connection goes on.
func TestRefusedUploadOverHTTP2(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Server.H2C = true })
	f.drain(limit.Key{Tenant: "t1", Route: "up"})
	conn := f.dial(t)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(framer.WriteSettings())
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for stream := uint32(1); stream <= 3; stream += 2 {
		block.Reset()
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/v1/upload"}, {"x-api-key", "k-t1"}} {
			check(e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
		}
		check(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}))
		check(framer.WriteData(stream, false, make([]byte, 1000)))
		for body, ended := false, false; !ended; {
			frame, err := framer.ReadFrame()
			check(err)
			switch frame := frame.(type) {
			case *http2.MetaHeadersFrame:
				if s := frame.PseudoValue("status"); s != "429" {
					t.Fatalf("status %s", s)
				}
			case *http2.DataFrame:
				if len(frame.Data()) > 0 && !body {
					body = true // The answer is here; only now does the upload go on and end.
					check(framer.WriteData(stream, false, make([]byte, 1000)))
					check(framer.WriteData(stream, true, nil))
				}
				ended = frame.StreamEnded()
			case *http2.RSTStreamFrame, *http2.GoAwayFrame:
				t.Fatalf("%v in the middle of an upload", frame)
			}
		}
	}
}
