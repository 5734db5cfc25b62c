package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/shared/limit"
)

// line is one line of the log, as readers see it.
type line struct {
	// Time is when the answer was known, TookMicros how long that took: the tokens were taken in between.
	Time       time.Time `json:"time"`
	TookMicros int64     `json:"took_us"`
	Region     string    `json:"region"`
	Instance   string    `json:"instance"`
	Tenant     string    `json:"tenant"`
	Route      string    `json:"route"`
	// Cost in tokens, of every limit of the request.
	Cost    int64  `json:"cost"`
	Outcome string `json:"outcome"`
	Source  string `json:"source"`
	// Limit is the route of the limit that Share (parts per million) and Remaining (whole tokens of the region's slice) speak of:
	// the request's own, or @tenant.
	Limit     string `json:"limit"`
	Share     int64  `json:"share"`
	Remaining int64  `json:"remaining"`
	// RetryMicros is the wait that a refused client was told.
	RetryMicros int64 `json:"retry_us"`
	// TraceID of the request's span, where it has one.
	TraceID string `json:"trace_id,omitempty"`
}

// decides answers every request with the same decision.
type decides limit.Decision

func (d decides) Admit(_ context.Context, _ time.Time, req admit.Request) limit.Decision {
	answer := limit.Decision(d)
	answer.Key = limit.Key{Tenant: req.Tenant, Route: req.Route}
	return answer
}

var refused = decides{Outcome: limit.Refused, Source: limit.SourceRedis, Share: 700_000, Remaining: 1, RetryAfter: 250 * time.Millisecond}

func lines(t *testing.T, path string) []line {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []line
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

func TestEveryDecisionIsAline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions")
	l, err := Open(Options{File: path, Region: "eu", Instance: "eu-1", Next: refused})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running, callers sync.WaitGroup
	running.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	before := time.Now()
	odd := "o\"d\\\x00ü\u2028"
	for i := range 8 {
		callers.Go(func() {
			for range 100 {
				l.Admit(ctx, before, admit.Request{Tenant: odd, Route: fmt.Sprintf("r%d", i), Cost: 3})
			}
		})
	}
	callers.Wait()
	cancel()
	running.Wait()

	got := lines(t, path)
	if len(got) != 800 {
		t.Fatalf("%d lines of 800 decisions", len(got))
	}
	for _, g := range got {
		if g.Time.Before(before) || g.Time.After(time.Now()) || g.TookMicros < 0 {
			t.Fatalf("decided at %v in %d µs", g.Time, g.TookMicros)
		}
		want := line{
			Time: g.Time, TookMicros: g.TookMicros, Region: "eu", Instance: "eu-1", Tenant: odd, Route: g.Route, Cost: 3,
			Outcome: "refused", Source: "redis", Limit: g.Route, Share: 700_000, Remaining: 1, RetryMicros: 250_000,
		}
		if g != want {
			t.Fatalf("line %+v, want %+v", g, want)
		}
	}
}

// A file that is moved away by rotation is made anew, and one that cannot be written costs no request, only lines that are
// counted.
func TestFileComesAndGoes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "decisions")
	if _, err := Open(Options{File: path, Next: refused}); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("a file that cannot be made: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	reader := metric.NewManualReader()
	l, err := Open(Options{File: path, Next: refused, Meter: metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")})
	if err != nil {
		t.Fatal(err)
	}
	decide := func() {
		l.looked = time.Time{} // a second has passed
		l.Admit(t.Context(), time.Now(), admit.Request{Tenant: "a", Route: "b", Cost: 1})
		l.flush(t.Context(), nil)
	}
	decide()
	moved := filepath.Join(dir, "moved")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	decide()
	if a, b := len(lines(t, moved)), len(lines(t, path)); a != 1 || b != 1 {
		t.Errorf("%d lines in the old file, %d in the new one, want 1 each", a, b)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	decide()
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	decide()
	if n := len(lines(t, path)); n != 1 {
		t.Errorf("%d lines after the directory is back, want 1", n)
	}
	if n := droppedBy(t, reader); n != 1 {
		t.Errorf("%d lines counted as dropped, want 1", n)
	}
}

// Nobody writes: what waits is bounded, and the rest is counted.
func TestSlowFileIsNotWaitedFor(t *testing.T) {
	reader := metric.NewManualReader()
	path := filepath.Join(t.TempDir(), "decisions")
	l, err := Open(Options{File: path, Next: refused, Meter: metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("n", 1<<20)
	for range 6 {
		l.Admit(t.Context(), time.Now(), admit.Request{Tenant: name, Route: "b", Cost: 1})
	}
	l.flush(t.Context(), nil)
	if kept, dropped := len(lines(t, path)), droppedBy(t, reader); kept != 4 || dropped != 2 {
		t.Errorf("%d lines kept, %d dropped, want 4 and 2", kept, dropped)
	}
}

func TestNothingIsAllocatedPerDecision(t *testing.T) {
	l, err := Open(Options{File: filepath.Join(t.TempDir(), "decisions"), Next: refused})
	if err != nil {
		t.Fatal(err)
	}
	l.pending = make([]byte, 0, maxPending)
	req := admit.Request{Tenant: "shop-a", Route: "create-order", Cost: 1}
	if n := testing.AllocsPerRun(1000, func() { l.Admit(t.Context(), time.Now(), req) }); n > 0 {
		t.Errorf("%v allocations per decision", n)
	}
}

func droppedBy(t *testing.T, r *metric.ManualReader) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "partidor.decision_log.dropped" {
				n += sum.DataPoints[0].Value
			}
		}
	}
	return n
}

// A process that was killed may leave half a line: the next one begins its own.
func TestTornLineIsEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions")
	if err := os.WriteFile(path, []byte(`{"time":"2026`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := Open(Options{File: path, Next: refused})
		if err != nil {
			t.Fatal(err)
		}
		l.Admit(t.Context(), time.Now(), admit.Request{Tenant: "a", Route: "b", Cost: 1})
		l.flush(t.Context(), nil)
	}
	text, err := os.ReadFile(path)
	if got := strings.Split(string(text), "\n"); err != nil || len(got) != 4 || got[0] != `{"time":"2026` || !json.Valid([]byte(got[1])) || !json.Valid([]byte(got[2])) {
		t.Errorf("%q, %v", got, err)
	}
}
