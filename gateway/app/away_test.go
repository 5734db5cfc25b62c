package app_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/app"
	"partidor.dev/partidor/shared/telemetry"
	"partidor.dev/partidor/shared/testenv"
)

// PostgreSQL away without a usable snapshot: -check-config refuses, naming file, line and field; a gateway says the very
// same words once, serves nothing, and is ready by itself once the database is back (issue "bad input", request-path 85).
func TestDatabaseAwayWithoutSnapshot(t *testing.T) {
	server := testenv.StartPostgresServer(t)
	pg := server.Database(t)
	s := newSet(t)
	config := strings.Replace(s.config, s.postgres.URL, pg.URL, 1) + "region: eu\n"
	s.postgres, s.ledger = pg, pg.Conn(t)
	migrate(t, s)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 2, 1, 3600)

	dir := t.TempDir()
	good, damaged := filepath.Join(dir, "good"), filepath.Join(dir, "damaged")
	saving := func(file string) string { return config + "snapshot: {file: " + file + "}\n" }
	start(t, saving(good)).stop()
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, []byte(strings.Replace(string(text), `"capacity":2`, `"capacity":9`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if warnings, err := app.Check(t.Context(), app.Options{Config: []byte(saving(good))}); err != nil || len(warnings) > 0 {
		t.Errorf("the database is there: warnings %q, error %v", warnings, err)
	}
	server.Stop()

	warnings, err := app.Check(t.Context(), app.Options{Config: []byte(saving(good))})
	if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "configuration:7: postgres.url: the database is away, a gateway would serve by the snapshot saved at 20") {
		t.Errorf("with a usable snapshot: warnings %q, error %v", warnings, err)
	}
	for name, c := range map[string]struct{ config, why string }{
		"no place for one": {config, "snapshot.file names no place to keep the last good ones in"},
		"none yet":         {saving(filepath.Join(dir, "none")), "no snapshot is saved in " + dir + "/none yet"},
		"damaged":          {saving(damaged), "the snapshot in " + damaged + " is not usable: checksum does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := app.Check(t.Context(), app.Options{Config: []byte(c.config)})
			if err == nil || len(warnings) > 0 || !strings.Contains(err.Error(), c.why) ||
				!strings.HasPrefix(err.Error(), "configuration:7: postgres.url: no rules to serve by: read rules from postgres: ") {
				t.Fatalf("check: warnings %q, error %v", warnings, err)
			}
			var log record
			tel := telemetry.Discard()
			tel.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: dropWhitespace}))
			g, started := startOptions(t, app.Options{Config: []byte(c.config), Telemetry: tel})
			if started != nil {
				t.Fatal(started)
			}
			if words := oneLine(err.Error()); log.count(`"ERROR"`) != 1 || log.count(words) != 1 {
				t.Errorf("the check says\n%s\nthe gateway has logged\n%s", words, log.text.String())
			}
			if status, body := g.ready(); status != http.StatusServiceUnavailable || body.Reasons[0].Reason != "no rules" {
				t.Errorf("readiness %d %+v, want not ready", status, body)
			}
			for _, key := range []string{"shop-a", "", "nobody"} {
				if r := g.post(key); r.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("key %q: status %d without rules, want 503", key, r.StatusCode)
				}
			}
			server.Restart(t)
			eventually(t, 20*time.Second, "the gateway is ready", func() bool {
				status, _ := g.ready()
				return status == http.StatusOK
			})
			if r := g.post("shop-a"); r.StatusCode != http.StatusOK || r.Header.Get("X-RateLimit-Limit") != "2" {
				t.Errorf("after the return: status %d limit %q, want 200 by the rule", r.StatusCode, r.Header.Get("X-RateLimit-Limit"))
			}
			g.stop()
			s.redis.Client().FlushAll(t.Context())
			server.Stop()
		})
	}
}

// oneLine is text as dropWhitespace leaves it: pgx lists the addresses that it tried on lines of their own.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func dropWhitespace(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(oneLine(err.Error()))
	}
	return a
}

// A secret that is missing keeps a gateway from starting; the check says so in the same words.
func TestMissingSecretsAreFoundByTheCheck(t *testing.T) {
	const head = "region: eu\nupstreams: {o: {targets: [{url: http://127.0.0.1:9}]}}\nroutes: [{id: r, path: /r, upstream: o}]\n"
	for _, c := range []struct{ config, want string }{
		{head + "postgres:\n  url_file: none\n", "configuration:5: postgres.url_file: open none: no such file"},
		{head + "postgres:\n  url_env: PARTIDOR_TEST_UNSET\n", "configuration:5: postgres.url_env: PARTIDOR_TEST_UNSET is not set"},
		{head + "postgres: {url: postgres://127.0.0.1:1/x}\nredis:\n  password_env: PARTIDOR_TEST_UNSET\n", "configuration:6: redis.password_env: PARTIDOR_TEST_UNSET is not set"},
		{head + "postgres: {url: postgres://127.0.0.1:1/x}\nredis: {password_file: none}\n", "configuration:5: redis: redis options: password_file: open none"},
		{head + "postgres: {url: postgres://127.0.0.1:1/x}\nnats: {urls: ['nats://127.0.0.1:1'], nkey_file: none}\n", "configuration:5: nats.nkey_file: "},
	} {
		_, checked := app.Check(t.Context(), app.Options{Config: []byte(c.config)})
		if checked == nil || !strings.HasPrefix(checked.Error(), c.want) {
			t.Errorf("check: %v\nwant %s", checked, c.want)
		}
		started := app.Run(t.Context(), app.Options{Config: []byte(c.config), Listener: listen(t), AdminListener: listen(t), Telemetry: telemetry.Discard()})
		if started == nil || started.Error() != checked.Error() {
			t.Errorf("start: %v\ncheck: %v", started, checked)
		}
	}
}
