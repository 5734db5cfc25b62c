package collect

import (
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// maxRate is the highest believable rate of one key at one instance, in tokens per second.
const maxRate = 10 * limit.MaxRefillPerSecond

// maxAge is the highest believable age of an instance: ten years.
const maxAge = int64(10*366*24*time.Hour) / int64(time.Millisecond)

// Table is the state behind a Collector, pure: it reads no clock and does no I/O, so the simulator runs it too. Times are
// durations since its start. Not safe for concurrent use.
type Table struct {
	options     Options
	drop        func(reason string, n int)
	regions     map[string]int
	states      []region
	instances   map[instanceName]*instance
	keys        map[limit.Key]*key
	order       order // of the keys
	details     map[keyRegion]*detail
	swept       time.Duration
	over, short int // keys whose shares make more or less than a whole
}

type instanceName struct{ region, instance string }

// region is what is known of a region as a whole.
type region struct {
	name string
	// heard last, and since when without a silence.
	heard, since time.Duration
	life         int
	live         int
}

type key struct {
	name  limit.Key
	used  time.Duration
	loads []load
	// torn is since when its shares make no whole, 0 while they do.
	torn time.Duration
}

// NewTable makes an empty table. Of the options it reads Parameters, the durations and the bounds. drop is told what is
// dropped and why.
func NewTable(o Options, drop func(reason string, n int)) *Table {
	return &Table{
		options: o.withDefaults(), drop: drop,
		regions: map[string]int{}, instances: map[instanceName]*instance{}, keys: map[limit.Key]*key{}, details: map[keyRegion]*detail{},
	}
}

// Reasons for dropping reports or keys, as they appear in metrics.
const (
	dropRepeated  = "repeated"
	dropAbsurd    = "absurd"
	dropName      = "bad_name"
	dropOldLife   = "old_life"
	dropFull      = "full"
	dropMalformed = "malformed"
	dropForeign   = "foreign_subject"
)

// Heartbeat notes that an instance lives.
func (t *Table) Heartbeat(now time.Duration, h *wire.Heartbeat) {
	if in := t.meet(now, &h.Header); in != nil {
		in.draining, in.stale, in.degraded = h.Draining, h.Stale, h.Degraded
		in.rules = in.rules.Max(h.Rules)
	}
}

// Usage takes in one report, or one chunk of one.
func (t *Table) Usage(now time.Duration, u *wire.Usage) {
	if u.ElapsedMillis < 0 || u.ElapsedMillis > maxAge {
		t.drop(dropAbsurd, 1)
		return
	}
	in := t.meet(now, &u.Header)
	if in == nil {
		return
	}
	if !in.reported {
		// A life younger than our listening is seen from its first count on, whatever was lost since.
		in.reported = true
		in.complete = in.complete || time.Duration(u.ElapsedMillis)*time.Millisecond <= now
	}
	place := in.seen.observe(u.Sequence)
	if place == repeated {
		t.drop(dropRepeated, 1)
		return
	}
	if !in.report(u, place) {
		t.drop(dropAbsurd, 1)
		return
	}
	p := t.options.Parameters()
	for i := range u.Keys {
		t.count(now, in, u, &u.Keys[i], place, p)
	}
}

// meet finds or makes the instance a message comes from.
func (t *Table) meet(now time.Duration, h *wire.Header) *instance {
	r, ok := t.region(h.Region)
	if !ok || h.Instance == "" || len(h.Instance) > limit.MaxNameBytes {
		t.drop(dropName, 1)
		return nil
	}
	name := instanceName{h.Region, h.Instance}
	in := t.instances[name]
	switch {
	case in == nil && len(t.instances) >= t.options.MaxInstances:
		t.drop(dropFull, 1)
		return nil
	case in != nil && h.Started < in.started:
		t.drop(dropOldLife, 1)
		return nil
	case in == nil || h.Started > in.started:
		// A life that follows one we know began while we listened.
		in = &instance{region: r, started: h.Started, complete: in != nil, counters: map[*key]counter{}}
		t.instances[name] = in
	}
	in.heard = now
	t.hear(now, r)
	return in
}

// region finds or makes a region by name.
func (t *Table) region(name string) (int, bool) {
	if i, ok := t.regions[name]; ok {
		return i, true
	}
	if limit.ValidateName("region", name) != nil || len(t.states) >= t.options.MaxRegions {
		return 0, false
	}
	t.regions[name] = len(t.states)
	t.states = append(t.states, region{name: name, heard: -1})
	return len(t.states) - 1, true
}

func (t *Table) hear(now time.Duration, r int) {
	s := &t.states[r]
	if s.heard < 0 || now-s.heard > t.options.SilentAfter {
		s.since = now
		s.life++
	}
	s.heard = now
}

// known tells whether a region's numbers can be relied on: it is not silent and has been heard for two whole windows.
func (t *Table) known(now time.Duration, r int) bool {
	s := &t.states[r]
	return s.heard >= 0 && now-s.heard <= t.options.SilentAfter && now-s.since >= 2*t.options.Window
}

// count takes in one key of a report.
func (t *Table) count(now time.Duration, in *instance, u *wire.Usage, ku *wire.KeyUsage, place verdict, p plan.Parameters) {
	k, ok := t.key(now, limit.Key{Tenant: ku.Tenant, Route: ku.Route})
	if !ok {
		return
	}
	last, counted := in.counters[k]
	if counted && place == late && (ku.Admitted < last.admitted || ku.Refused < last.refused || u.ElapsedMillis <= last.elapsed) {
		return // overtaken by a newer report
	}
	if counted && u.ElapsedMillis == last.elapsed {
		t.drop(dropRepeated, 1) // the same key twice in one report
		return
	}
	in.counters[k] = counter{ku.Admitted, ku.Refused, u.ElapsedMillis}
	l := t.load(now, k, in.region, p)
	t.note(now, keyRegion{k, in.region}, u.Instance, ku, l.share)
	grew := (counted || in.complete) && (ku.Admitted > last.admitted || ku.Refused > last.refused)
	if ku.Share > 0 && ku.Share <= limit.Whole && l.believes(now, ku, grew) {
		l.share, l.tokens = ku.Share, ku.Tokens
		if grew {
			l.shareAt = now
		}
	}
	from := max(last.elapsed, in.unchangedUntil(u.ElapsedMillis))
	switch {
	case !counted && !in.complete:
		return // counts from before we listened
	case ku.Admitted < last.admitted || ku.Refused < last.refused:
		last = counter{} // the instance had forgotten the key and counts it anew
	}
	c := counts{refused: float64(ku.Refused - last.refused)}
	c.offered = float64(ku.Admitted-last.admitted) + c.refused
	span := time.Duration(u.ElapsedMillis-from) * time.Millisecond
	if span <= 0 || c.offered/span.Seconds() > maxRate {
		t.drop(dropAbsurd, 1)
		return
	}
	if c.offered > 0 {
		k.used = now
		t.options.Counted(c.offered-c.refused, c.refused)
		l.add(c, now-span, now, t.options.Window)
	}
}

// key finds or makes a key; false if its name is bad or the table is full.
func (t *Table) key(now time.Duration, name limit.Key) (*key, bool) {
	if k := t.keys[name]; k != nil {
		return k, true
	}
	if limit.ValidateName("tenant", name.Tenant) != nil || !validRoute(name.Route) {
		t.drop(dropName, 1)
		return nil, false
	}
	if len(t.keys) >= t.options.MaxKeys {
		t.drop(dropFull, 1)
		return nil, false
	}
	k := &key{name: name, used: now}
	t.keys[name] = k
	t.order.add(k)
	return k, true
}

func validRoute(route string) bool {
	return route == limit.TenantRoute || limit.ValidateName("route", route) == nil
}

// load finds a key's load in a region, with its windows up to date.
func (t *Table) load(now time.Duration, k *key, r int, p plan.Parameters) *load {
	for len(k.loads) <= r {
		k.loads = append(k.loads, load{})
	}
	l := &k.loads[r]
	window := int64(now / t.options.Window)
	if l.life != t.states[r].life {
		l.begin(t.states[r].life, window, t.states[r].since, t.options.Window)
	}
	l.advance(window, t.options.Window, p)
	return l
}

// Sweep forgets what has not been heard or used for long. Cheap enough for once a window.
func (t *Table) Sweep(now time.Duration) {
	t.swept = now
	t.weigh(now)
	forget := t.options.ForgetAfter
	if len(t.keys) > t.options.MaxKeys*9/10 {
		forget = min(forget, time.Minute) // make room for keys in use
	}
	gone := map[*key]bool{}
	for name, k := range t.keys {
		if now-k.used > forget {
			gone[k] = true
			delete(t.keys, name)
		}
	}
	t.order.remove(gone)
	t.forgetDetails(now, gone)
	for i := range t.states {
		t.states[i].live = 0
	}
	for name, in := range t.instances {
		if now-in.heard > 3*t.options.SilentAfter {
			delete(t.instances, name)
			continue
		}
		if now-in.heard <= t.options.SilentAfter && !in.draining {
			t.states[in.region].live++
		}
		if len(gone) > 0 {
			for k := range in.counters {
				if gone[k] {
					delete(in.counters, k)
				}
			}
		}
	}
}
