package bounded

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"partidor.dev/partidor/shared/limit"
)

func key(i int) limit.Key { return limit.Key{Tenant: "t" + strconv.Itoa(i), Route: "r"} }

func TestGetOrAddFillsOnce(t *testing.T) {
	m := New[int](64, nil)
	for range 3 {
		*m.GetOrAdd(key(1), func(fresh, lost *int) {
			if lost != nil {
				t.Error("a value was pushed out of an empty map")
			}
			*fresh = 41
		})++
	}
	if got := m.Get(key(1)); got == nil || *got != 44 {
		t.Errorf("value = %v, want 44", got)
	}
	if m.Get(key(2)) != nil {
		t.Error("an unknown key was found")
	}
	if m.Len() != 1 {
		t.Errorf("len = %d, want 1", m.Len())
	}
}

func TestKeysOfOneTenantAreDistinct(t *testing.T) {
	m := New[string](64, nil)
	for _, k := range []limit.Key{{Tenant: "a", Route: "bc"}, {Tenant: "ab", Route: "c"}, {Tenant: "bc", Route: "a"}} {
		m.GetOrAdd(k, func(fresh, _ *string) { *fresh = k.String() })
	}
	m.Range(func(k limit.Key, v *string) bool {
		if *v != k.String() {
			t.Errorf("%v holds %s", k, *v)
		}
		return true
	})
	if m.Len() != 3 {
		t.Errorf("len = %d, want 3", m.Len())
	}
}

func TestNeverGrowsBeyondItsCapacity(t *testing.T) {
	m := New[int](1000, nil)
	for i := range 50_000 {
		m.GetOrAdd(key(i), func(_, _ *int) {})
	}
	seen := 0
	m.Range(func(limit.Key, *int) bool { seen++; return true })
	if m.Len() > m.Cap() || m.Cap() > 1000+ways || seen != m.Len() {
		t.Errorf("len %d, cap %d, seen %d", m.Len(), m.Cap(), seen)
	}
	if m.Evicted() != uint64(50_000-m.Len()) {
		t.Errorf("evicted %d of 50000 with %d left", m.Evicted(), m.Len())
	}
}

func TestAKeyInUseIsNotPushedOut(t *testing.T) {
	m := New[int](80, nil)
	m.GetOrAdd(key(-1), func(fresh, _ *int) { *fresh = 7 })
	for i := range 20_000 {
		m.GetOrAdd(key(i), func(_, _ *int) {})
		if v := m.Get(key(-1)); v == nil || *v != 7 {
			t.Fatalf("pushed out by passer-by %d", i)
		}
	}
}

func TestWorthlessValuesGoFirst(t *testing.T) {
	m := New(ways, func(v *int) int { return *v })
	for i := range ways {
		m.GetOrAdd(key(i), func(fresh, _ *int) { *fresh = i }) // only key 0 is worth nothing
		m.Get(key(i))
	}
	m.GetOrAdd(key(100), func(fresh, lost *int) {
		if *lost != 0 {
			t.Errorf("lost a value worth %d", *lost)
		}
		*fresh = 9
	})
	if m.Get(key(0)) != nil {
		t.Error("the worthless one is still there")
	}
}

func TestManyGoroutines(t *testing.T) {
	m := New[sync.Mutex](256, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 5000 {
				mu := m.GetOrAdd(key((i*7+g)%600), func(_, _ *sync.Mutex) {})
				mu.Lock()
				mu.Unlock() //nolint:staticcheck // only that it can be locked matters
				m.Get(key(i % 600))
			}
		})
	}
	wg.Wait()
	distinct := make(map[limit.Key]bool)
	m.Range(func(k limit.Key, _ *sync.Mutex) bool {
		if distinct[k] {
			t.Errorf("%v is there twice", k)
		}
		distinct[k] = true
		return true
	})
}

func TestGetAllocatesNothing(t *testing.T) {
	m := New[int](1024, nil)
	k := key(5)
	m.GetOrAdd(k, func(_, _ *int) {})
	if n := testing.AllocsPerRun(1000, func() { m.Get(k) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{1000, 200_000} {
		m := New[int](size*2, nil)
		keys := make([]limit.Key, size)
		for i := range keys {
			keys[i] = key(i)
			m.GetOrAdd(keys[i], func(_, _ *int) {})
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.Get(keys[i%size])
			}
		})
	}
}
