package rules_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"partidor.dev/partidor/gateway/internal/control/rules"
	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

func rev(n int64) limit.Revision { return limit.Revision{Epoch: 1, Number: n} }

// source is a ledger of one rule in memory: capacity n since revision n. It shows no more than visible.
type source struct {
	mu      sync.Mutex
	visible int64
	err     error
	reads   []time.Duration // since began
	began   time.Time
}

func (s *source) Name() string { return "test" }

func (s *source) Read(_ context.Context, since limit.Revision) (*rules.Increment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, time.Since(s.began))
	if s.err != nil {
		return nil, s.err
	}
	inc := &rules.Increment{Whole: since == limit.Revision{}, Reached: rev(s.visible), Regions: []snapshot.Region{{Name: "eu", Base: limit.Whole}}}
	if since.Newer(rev(s.visible)) {
		return &rules.Increment{Behind: true}, nil
	}
	if since != rev(s.visible) {
		r := &limit.Rule{Capacity: s.visible, Refill: 1, PeriodSeconds: 1, Revision: rev(s.visible)}
		inc.Rules = []snapshot.RuleEntry{{Tenant: "shop-a", Route: "orders", Rule: r, Revision: rev(s.visible)}}
	}
	return inc, nil
}

func (s *source) show(n int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visible, s.err = n, err
}

func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads)
}

// running starts a loader over src inside a synctest bubble and returns it with its holder.
func running(t *testing.T, src *source, change ...func(*rules.Options)) (*rules.Loader, *snapshot.Holder) {
	t.Helper()
	src.began = time.Now()
	o := rules.Options{Holder: snapshot.NewHolder("eu"), Source: src}
	for _, f := range change {
		f(&o)
	}
	l := newLoader(t, o)
	_ = l.Start(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l, o.Holder
}

func capacity(h *snapshot.Holder) int64 { return h.Load().Lookup("shop-a", "orders").Rule.Capacity }

// Version 8 then 7: 7 ignored; then 9 is dropped: the poll finds it (request-path 86).
func TestEventsOutOfOrderOrLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{visible: 1}
		l, h := running(t, src)
		src.show(8, nil)
		l.Announce(t.Context(), rev(8))
		time.Sleep(200 * time.Millisecond)
		if got := capacity(h); got != 8 {
			t.Errorf("capacity %d soon after the event, want 8", got)
		}
		before := src.count()
		l.Announce(t.Context(), rev(7))
		l.Announce(t.Context(), rev(8))
		time.Sleep(200 * time.Millisecond)
		if src.count() != before {
			t.Error("an event that brings nothing new made the loader read")
		}
		src.show(9, nil)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if got := capacity(h); got != 9 {
			t.Errorf("capacity %d a poll later, want 9", got)
		}
	})
}

func TestBurstOfEventsIsFewReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{visible: 1}
		l, h := running(t, src)
		for n := int64(2); n <= 1001; n++ {
			src.show(n, nil)
			l.Announce(t.Context(), rev(n))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		if got := capacity(h); got != 1001 {
			t.Errorf("capacity %d, want 1001", got)
		}
		if n := src.count(); n > 25 {
			t.Errorf("%d reads for a second of events, want at most 20 or so", n)
		}
	})
}

// An event can be ahead of the replica that a gateway reads.
func TestReplicaBehindItsAnnouncementIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{visible: 1}
		l, h := running(t, src)
		l.Announce(t.Context(), rev(2))
		time.Sleep(500 * time.Millisecond)
		if s := l.Status(); s.Announced != rev(2) || s.Revision != rev(1) {
			t.Errorf("status %+v, want revision 1.1 with 1.2 announced", s)
		}
		src.show(2, nil)
		time.Sleep(time.Second)
		if got := capacity(h); got != 2 {
			t.Errorf("capacity %d a second after the replica has caught up, want 2", got)
		}
		// A revision that never comes costs ever fewer reads.
		l.Announce(t.Context(), rev(1000))
		before := src.count()
		time.Sleep(time.Hour)
		if n := src.count() - before; n > 140 {
			t.Errorf("%d reads in an hour of waiting, want about the polls", n)
		}
	})
}

func TestSourceAwayWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{visible: 1}
		l, h := running(t, src)
		src.show(1, errors.New("too many clients already"))
		l.Look()
		time.Sleep(time.Minute)
		s := l.Status()
		if s.Err == nil || !s.Loaded || s.Stale {
			t.Errorf("status %+v, want loaded with an error", s)
		}
		if age := time.Since(s.ConfirmedAt); age < time.Minute {
			t.Errorf("confirmed %s ago although the source is away", age)
		}
		if got := capacity(h); got != 1 {
			t.Errorf("capacity %d, want the last good 1", got)
		}
		src.show(2, nil)
		time.Sleep(31 * time.Second)
		if got := capacity(h); got != 2 || l.Status().Err != nil {
			t.Errorf("capacity %d, error %v after the source is back", got, l.Status().Err)
		}
	})
}

// A source that goes on failing is logged once, and again when it fails in another way: whoever edits a rules file reads there
// what is wrong with the latest version.
func TestEachFaultIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		src := &source{visible: 1}
		l, _ := running(t, src, func(o *rules.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		for _, fault := range []string{"revision not raised", "unknown field"} {
			src.show(1, errors.New(fault))
			l.Look()
			time.Sleep(time.Minute)
		}
		src.show(2, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, fault := range []string{"revision not raised", "unknown field"} {
			if n := strings.Count(log.String(), fault); n != 1 {
				t.Errorf("%q is logged %d times:\n%s", fault, n, log.String())
			}
		}
	})
}

// With neither source nor saved snapshot there is nothing to serve by; the loader goes on trying.
func TestNothingToServeBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{err: errors.New("connection refused")}
		l, h := running(t, src)
		if l.Status().Loaded {
			t.Error("loaded from nothing")
		}
		src.show(3, nil)
		time.Sleep(10 * time.Second)
		if !l.Status().Loaded || capacity(h) != 3 {
			t.Errorf("not loaded ten seconds after the source came: %+v", l.Status())
		}
	})
}

func TestTemporaryRuleEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{visible: 5}
		_, h := running(t, src)
		_ = h.Update(func(b *snapshot.Builder) error {
			b.SetRule("shop-a", "orders", &limit.Rule{Capacity: 77, Refill: 1, PeriodSeconds: 1, Revision: rev(6), ExpiresAt: time.Now().Add(40 * time.Second)})
			return nil
		})
		time.Sleep(39 * time.Second)
		if got := capacity(h); got != 77 {
			t.Errorf("capacity %d before the end, want 77", got)
		}
		time.Sleep(2 * time.Second)
		if got := capacity(h); got != limit.DefaultRule.Capacity {
			t.Errorf("capacity %d after the end, want the default", got)
		}
	})
}

// The database does not answer: a gateway with a saved snapshot does not wait for it for long.
func TestStartDoesNotWaitForASlowSource(t *testing.T) {
	file := t.TempDir() + "/snapshot"
	synctest.Test(t, func(t *testing.T) {
		first := newLoader(t, rules.Options{Holder: snapshot.NewHolder("eu"), Source: &source{visible: 4}, File: file})
		if err := first.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = first.Run(ctx)

		holder, began := snapshot.NewHolder("eu"), time.Now()
		l := newLoader(t, rules.Options{Holder: holder, Source: silent{}, File: file})
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 20*time.Second || capacity(holder) != 4 || !l.Status().Stale {
			t.Errorf("after %s: capacity %d, status %+v", took, capacity(holder), l.Status())
		}
	})
}

// silent is a source that never answers.
type silent struct{}

func (silent) Name() string { return "silent" }

func (silent) Read(ctx context.Context, _ limit.Revision) (*rules.Increment, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
