package leader

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a Store that can be cut off: calls then wait for their deadline.
type gate struct {
	Store
	cut atomic.Bool
}

func (g *gate) wait(ctx context.Context) error {
	if !g.cut.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (g *gate) Read(ctx context.Context) (Row, error) {
	if err := g.wait(ctx); err != nil {
		return Row{}, err
	}
	return g.Store.Read(ctx)
}

func (g *gate) Renew(ctx context.Context, term int64) error {
	if err := g.wait(ctx); err != nil {
		return err
	}
	return g.Store.Renew(ctx, term)
}

func (g *gate) Resign(ctx context.Context, term int64) error {
	if err := g.wait(ctx); err != nil {
		return err
	}
	return g.Store.Resign(ctx, term)
}

// reigns notes who led from when to when.
type reigns struct {
	mu   sync.Mutex
	list []reign
}

type reign struct {
	holder   string
	term     int64
	from, to time.Time
}

func (r *reigns) lead(holder string) func(context.Context, int64) {
	return func(ctx context.Context, term int64) {
		r.mu.Lock()
		i := len(r.list)
		r.list = append(r.list, reign{holder: holder, term: term, from: time.Now()})
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		r.list[i].to = time.Now()
		r.mu.Unlock()
	}
}

func (r *reigns) all() []reign {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]reign(nil), r.list...)
}

func TestOneLeadsAndAnotherTakesOverWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store := NewMemory(10)
		first, second := &gate{Store: store}, &gate{Store: store}
		var r reigns
		go New(Options{Store: first, Holder: "a"}).Run(ctx, r.lead("a"))
		time.Sleep(time.Second)
		go New(Options{Store: second, Holder: "b"}).Run(ctx, r.lead("b"))
		time.Sleep(time.Minute)
		if got := r.all(); len(got) != 1 || got[0].holder != "a" || got[0].term != 11 {
			t.Fatalf("after a minute: %+v, want only a in term 11", got)
		}
		cutAt := time.Now()
		first.cut.Store(true)
		time.Sleep(10 * time.Second)
		got := r.all()
		if len(got) != 2 || got[1].holder != "b" || got[1].term <= got[0].term {
			t.Fatalf("after the cut: %+v, want b to follow in a higher term", got)
		}
		if got[0].to.IsZero() || !got[0].to.Before(got[1].from) {
			t.Errorf("a led until %v, b from %v: they overlap", got[0].to, got[1].from)
		}
		if gap := got[1].from.Sub(cutAt); gap > 5*time.Second {
			t.Errorf("take-over after %v, want at most 5 s", gap)
		}
		first.cut.Store(false)
		time.Sleep(time.Minute)
		if got := r.all(); len(got) != 2 {
			t.Errorf("the old leader came back: %+v", got)
		}
		cancel()
		synctest.Wait()
	})
}

func TestResigningHandsOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory(0)
		var r reigns
		a, stopA := context.WithCancel(t.Context())
		b, stopB := context.WithCancel(t.Context())
		defer stopB()
		go New(Options{Store: store, Holder: "a"}).Run(a, r.lead("a"))
		synctest.Wait()
		go New(Options{Store: store, Holder: "b"}).Run(b, r.lead("b"))
		time.Sleep(10 * time.Second)
		at := time.Now()
		stopA()
		time.Sleep(time.Second)
		got := r.all()
		if len(got) != 2 || got[1].from.Sub(at) > time.Second {
			t.Errorf("reigns %+v, want b within a second of %v", got, at)
		}
		stopB()
		synctest.Wait()
	})
}

// TestStoppedProcess is a leader that is frozen past its lease, as SIGSTOP does, and then continues: its first renewal is
// refused and its work cancelled.
func TestStoppedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store := NewMemory(0)
		e := New(Options{Store: store, Holder: "a"})
		var r reigns
		go e.Run(ctx, r.lead("a"))
		synctest.Wait()
		term := e.Term()
		row, _ := store.Read(ctx)
		if _, err := store.Take(ctx, row, "b"); err != nil { // meanwhile another took over
			t.Fatal(err)
		}
		if err := store.Renew(ctx, term); !errors.Is(err, ErrLost) {
			t.Errorf("renewal in term %d: %v, want ErrLost", term, err)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if e.Term() != 0 {
			t.Error("still believes to lead after a refused renewal")
		}
		cancel()
		synctest.Wait()
	})
}
