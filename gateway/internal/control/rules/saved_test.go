package rules

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

func at(n int64) limit.Revision { return limit.Revision{Epoch: 2, Number: n} }

// full is a snapshot with one of everything.
func full(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	b := snapshot.Empty("eu").Edit()
	if err := b.SetRegions([]snapshot.Region{{Name: "eu", Base: 700_000, Floor: 1, Domain: "a", Earlier: []snapshot.Earlier{{Share: 1, Until: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}}}, {Name: "us", Base: 300_000}}, at(1)); err != nil {
		t.Fatal(err)
	}
	b.SetDefault(&limit.Rule{Capacity: 3, Refill: 1, PeriodSeconds: 60, Revision: at(2)})
	b.SetRule("shop-a", "orders", &limit.Rule{Capacity: limit.MaxTokens, Refill: 5, PeriodSeconds: 60, Mode: limit.Shadow, OnError: limit.OnErrorDeny,
		Prefetch: true, Shards: 4, MaxCost: 7, HideHeaders: true, ExpiresAt: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Revision: at(3)})
	b.SetRule("*", "*", &limit.Rule{Capacity: 9, PeriodSeconds: 1, Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay, Revision: at(4)})
	b.SetRule("@gold", "@tenant", &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1, Mode: limit.Block, Revision: at(5)})
	b.SetRule("shop-b", "orders", &limit.Rule{Capacity: 9, Refill: 1, PeriodSeconds: 1, Revision: at(5)})
	b.DeleteRule("shop-b", "orders", at(6))
	b.SetPlan("shop-a", "gold", at(7))
	b.SetKey(sha256.Sum256([]byte("k")), snapshot.APIKey{Tenant: "shop-a", Enabled: true, ExpiresAt: time.Date(2998, 1, 1, 0, 0, 0, 0, time.UTC), Revision: at(8)})
	b.SetKey(sha256.Sum256([]byte("off")), snapshot.APIKey{Tenant: "shop-a", Revision: at(8)})
	b.MarkMoved(limit.Key{Tenant: "shop-a", Route: "orders"}, 650_000)
	b.MarkFloor(limit.Key{Tenant: "shop-a", Route: "orders"}, 32_500)
	b.MarkMoved(limit.Key{Tenant: "shop-b", Route: "orders"}, 650_000) // by the ledger's word, which does not tell the floor
	b.SetShadow(true)
	b.SetControl("hub")
	b.SetFastLoop(false)
	b.Reach(at(9))
	return b.Build()
}

// contents is everything a snapshot holds, in order.
func contents(s *snapshot.Snapshot) map[string]any {
	rules := map[string]any{}
	for e := range s.Rules() {
		e.Revision = limit.Revision{Epoch: e.Revision.Epoch, Number: e.Revision.Number}
		var r any = "deleted"
		if e.Rule != nil {
			r = *e.Rule
		}
		rules[e.Tenant+"/"+e.Route] = []any{r, e.Revision}
	}
	moved, floors := map[limit.Key]limit.Share{}, map[limit.Key]limit.Share{}
	maps.Insert(moved, s.Moved())
	for k := range moved {
		if floor, known := s.MovedFloor(k); known {
			floors[k] = floor
		}
	}
	keys := map[[32]byte]snapshot.APIKey{}
	maps.Insert(keys, s.APIKeys())
	return map[string]any{
		"rules": rules, "plans": slices.Collect(s.Plans()), "keys": keys, "moved": moved, "floors": floors, "default": *s.Default(), "regions": s.Regions(),
		"regionsAt": s.RegionsRevision(), "revision": s.Revision(), "shadow": s.Shadow(), "counts": s.Counts(), "base": s.Base(), "floor": s.Floor(),
		"votes": s.Votes().Domain, "fastLoop": s.FastLoop(),
	}
}

func TestSavedFormKeepsEverything(t *testing.T) {
	want, confirmed := full(t), time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var buf bytes.Buffer
	if err := encode(&buf, want, confirmed); err != nil {
		t.Fatal(err)
	}
	got, err := decode(bytes.NewReader(buf.Bytes()), "eu")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(contents(want), contents(got.snapshot)); d != "" {
		t.Error(d)
	}
	if !got.snapshot.Stale() || !got.at.Equal(confirmed) {
		t.Errorf("stale %v confirmed at %s", got.snapshot.Stale(), got.at)
	}
}

// A file that was cut, changed or written for another region is refused as a whole.
func TestSavedFormRefusesDamage(t *testing.T) {
	var buf bytes.Buffer
	if err := encode(&buf, full(t), time.Now()); err != nil {
		t.Fatal(err)
	}
	good := buf.String()
	for name, text := range map[string]string{
		"empty":         "",
		"cut":           good[:len(good)/2],
		"foot missing":  good[:strings.LastIndex(strings.TrimSpace(good), "\n")+1],
		"changed":       strings.Replace(good, `"capacity":9`, `"capacity":8`, 1),
		"line missing":  strings.Replace(good, strings.SplitAfter(good, "\n")[2], "", 1),
		"something on":  good + "{}\n",
		"version":       strings.Replace(good, `"version":1`, `"version":2`, 1),
		"another file":  "revision: 3\n",
		"only the foot": `{"foot":{"lines":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}` + "\n",
	} {
		if s, err := decode(strings.NewReader(text), "eu"); err == nil && len(s.snapshot.Regions()) > 0 {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := decode(strings.NewReader(good), "us"); err == nil {
		t.Error("another region's file: accepted")
	}
}

func FuzzSavedForm(f *testing.F) {
	var buf bytes.Buffer
	if err := encode(&buf, full(f), time.Now()); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := decode(bytes.NewReader(data), "eu"); err == nil && s.snapshot.Region() != "eu" {
			t.Error("read for another region")
		}
	})
}

// A disk that is full leaves the last good file, logs once, and is tried again.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(path, []byte("last good"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := replace(path, func(f *os.File) error {
		_, _ = f.WriteString("half")
		return syscall.ENOSPC
	})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "last good" {
		t.Errorf("the file holds %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	var log bytes.Buffer
	s := newSaver(filepath.Join(path, "not-a-directory"), time.Second, slog.New(slog.NewTextHandler(&log, nil)))
	now := time.Now()
	s.changed(now)
	for range 3 {
		s.save(context.Background(), full(t), now)
	}
	if n := strings.Count(log.String(), "cannot be saved"); n != 1 {
		t.Errorf("%d lines of log for three failures in a row, want 1", n)
	}
	if _, due := s.due(); !due {
		t.Error("a failed save is not tried again")
	}
	s.path = path
	s.save(context.Background(), full(t), now)
	if !strings.Contains(log.String(), "saved again") {
		t.Errorf("recovery is not logged:\n%s", log.String())
	}
	if _, due := s.due(); due {
		t.Error("due again without a change")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func BenchmarkSavedForm(b *testing.B) {
	builder := full(b).Edit()
	for i := range 500_000 {
		builder.SetRule("tenant-"+string(rune('a'+i%26))+time.Duration(i/5).String(), "route-"+string(rune('0'+i%5)),
			&limit.Rule{Capacity: int64(i + 1), Refill: 10, PeriodSeconds: 1, Revision: at(int64(i) + 10)})
	}
	s := builder.Build()
	var buf bytes.Buffer
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			buf.Reset()
			if err := encode(&buf, s, time.Now()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(buf.Len())/1e6, "MB")
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := decode(bytes.NewReader(buf.Bytes()), "eu"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
