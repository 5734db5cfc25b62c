package hot

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"partidor.dev/partidor/gateway/internal/config"
)

// WebSockets over HTTP/2 (RFC 8441) are not offered: the settings do not name them, by which browsers know to open a
// connection of HTTP/1.1, and a client that tries all the same has its stream reset; the requests beside it go on.
func TestExtendedConnectIsNotOffered(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Server.H2C = true })
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	send := func(stream uint32, fields ...string) {
		var block bytes.Buffer
		enc := hpack.NewEncoder(&block)
		for i := 0; i < len(fields); i += 2 {
			if err := enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: stream == 3}); err != nil {
			t.Fatal(err)
		}
	}
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	send(1, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/v1/ws", ":authority", "h", "x-api-key", "k-t1")
	send(3, ":method", "GET", ":scheme", "http", ":path", "/v1/items", ":authority", "h", "x-api-key", "k-t1")
	reset, answered := false, false
	for !reset || !answered {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("reset %t, answered %t: %v", reset, answered, err)
		}
		switch fr := frame.(type) {
		case *http2.SettingsFrame:
			if v, ok := fr.Value(http2.SettingEnableConnectProtocol); ok && v != 0 {
				t.Errorf("extended CONNECT is offered: %d", v)
			}
		case *http2.RSTStreamFrame:
			reset = reset || fr.StreamID == 1
		case *http2.MetaHeadersFrame:
			if answered = answered || fr.StreamID == 3; fr.StreamID != 3 || fr.PseudoValue("status") != "200" {
				t.Errorf("stream %d is answered %s", fr.StreamID, fr.PseudoValue("status"))
			}
		}
	}
	if f.echo.hits.Load() != 1 || f.admitter.spentBy("t1", "ws") != 0 {
		t.Errorf("%d hits, %d tokens for the switch", f.echo.hits.Load(), f.admitter.spentBy("t1", "ws"))
	}
}
