package app_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/app"
	"partidor.dev/partidor/shared/telemetry"
)

// Routes and credentials change while requests are served; a mistake changes nothing.
func TestConfigurationIsReloaded(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text+"\nregion: eu\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(s.config)
	g, err := startOptions(t, app.Options{ConfigFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if r := g.post("shop-a"); r.StatusCode != http.StatusOK {
		t.Fatalf("status %d, want 200", r.StatusCode)
	}
	write(strings.Replace(s.config, "path: /orders", "path: /purchases", 1))
	status := func(want int) func() bool {
		return func() bool { return g.post("shop-a").StatusCode == want }
	}
	eventually(t, 5*time.Second, "the route has moved away", status(http.StatusNotFound))
	write(strings.Replace(s.config, "path: /orders", "paths: /orders", 1))
	write(s.config)
	eventually(t, 5*time.Second, "the route is back", status(http.StatusOK))
}

// SIGHUP reloads a file that has not changed; a wrong one is refused with its line; sections that need a restart are named. The
// connections of clients live through it all.
func TestHangup(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+"\nregion: eu\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(s.config)
	var log record
	tel := telemetry.Discard()
	tel.Logger = slog.New(slog.NewTextHandler(&log, nil))
	hangup := make(chan os.Signal, 1)
	g, err := startOptions(t, app.Options{ConfigFile: file, Hangup: hangup, Telemetry: tel})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	serves := func() {
		t.Helper()
		if _, err := io.WriteString(conn, "POST /orders HTTP/1.1\r\nHost: a\r\nX-Api-Key: shop-a\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil || resp.StatusCode != http.StatusOK || resp.Close {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	serves()
	hangup <- syscall.SIGHUP
	eventually(t, 30*time.Second, "an unchanged file is reloaded", func() bool { return log.has("configuration reloaded") })
	serves()
	write(strings.Replace(s.config, "path: /orders", "paths: /orders", 1))
	eventually(t, 30*time.Second, "a mistake is refused with its line", func() bool {
		return log.has("configuration refused, the one before stays") && log.has(file+":3:")
	})
	serves()
	write(s.config + "\nusage: {heartbeat: 2s}\ncors: {origins: [https://a.example]}")
	eventually(t, 30*time.Second, "what needs a restart is named", func() bool {
		return log.has("sections take effect at the next start") && log.has("sections=[usage]")
	})
	serves()
}
