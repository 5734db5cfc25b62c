package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/app"
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
