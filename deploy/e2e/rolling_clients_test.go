package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	pieces     = 20
	pieceBytes = 64 << 10
)

// upload sends bodies that take two seconds each, one behind the other from four clients, and counts those that arrived whole.
func (r *rollout) upload(t *testing.T) *atomic.Int64 {
	t.Helper()
	whole := &atomic.Int64{}
	for range 4 {
		r.clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: patient}
			defer client.CloseIdleConnections()
			for r.ctx.Err() == nil {
				if g := r.pick(); g != nil {
					r.uploadOnce(t, client, g)
					whole.Add(1)
				}
			}
		})
	}
	return whole
}

func (r *rollout) uploadOnce(t *testing.T, client *http.Client, g *gateway) {
	body, w := io.Pipe()
	go func() {
		tick := time.NewTicker(2 * time.Second / pieces)
		defer tick.Stop()
		for range pieces {
			<-tick.C
			if _, err := w.Write(make([]byte, pieceBytes)); err != nil {
				return
			}
		}
		w.Close()
	}()
	defer body.Close()
	req, err := http.NewRequest(http.MethodPut, g.url+"/upload", body)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("X-Api-Key", "key-steady")
	resp, err := client.Do(req)
	if err != nil {
		t.Errorf("upload: %v", err)
		return
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || string(got) != strconv.Itoa(pieces*pieceBytes) {
		t.Errorf("upload: %s, %q, %v", resp.Status, got, err)
	}
}

// socket is an upgraded connection through one gateway.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
}

func openSocket(t *testing.T, g *gateway) *socket {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	s := &socket{conn, bufio.NewReader(conn)}
	if _, err := io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: a\r\nX-Api-Key: key-steady\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(s.in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("socket: %v, %v", resp, err)
	}
	return s
}

// says sends a line and wants it back.
func (s *socket) says(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(s.conn, line); err != nil {
		t.Fatalf("socket: %v", err)
	}
	if got, err := s.in.ReadString('\n'); err != nil || got != line {
		t.Fatalf("socket: %q, %v; want %q", got, err, line)
	}
}
