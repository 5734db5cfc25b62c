package usage_test

import (
	"fmt"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/control/usage"
	"partidor.dev/partidor/shared/wire"
)

const (
	second = time.Second
	period = 3 * second
)

// fleet drives one instance's view of its region on a clock of its own.
type fleet struct {
	members *usage.Members
	now     time.Duration
}

func newFleet(guess int) *fleet {
	return &fleet{members: usage.NewMembers("self", period, guess)}
}

func (f *fleet) hear(name string, change ...func(*wire.Heartbeat)) {
	h := wire.Heartbeat{Header: wire.Header{Instance: name, Started: 1}}
	for _, c := range change {
		c(&h)
	}
	f.members.Hear(f.now, &h)
}

// pass lets d pass second by second, while the named instances and this one beat.
func (f *fleet) pass(d time.Duration, beating ...string) {
	for end := f.now + d; f.now < end; {
		f.now += second
		f.hear("self")
		for _, name := range beating {
			f.hear(name)
		}
		f.members.Tick(f.now)
	}
}

func (f *fleet) want(t *testing.T, n int, when string) {
	t.Helper()
	if got := f.members.Live(); got != n {
		t.Errorf("%s: %d live, want %d", when, got, n)
	}
}

// 500 short-lived gateways: the count returns to the live number within one period (request-path 73).
func TestShortLivedInstancesExpire(t *testing.T) {
	f := newFleet(1)
	f.pass(5*second, "b", "c")
	f.want(t, 3, "before")
	for i := range 500 {
		f.hear(fmt.Sprintf("short-%d", i))
	}
	f.want(t, 503, "while they live")
	f.pass(period+second, "b", "c")
	f.want(t, 3, "one period after their last beat")
}

func TestDrainingInstanceIsGoneAtOnce(t *testing.T) {
	f := newFleet(1)
	f.pass(5*second, "b")
	f.hear("b", func(h *wire.Heartbeat) { h.Draining = true })
	f.want(t, 1, "after b said that it drains")
}

// A message of a former life that comes late says nothing about the present one.
func TestFormerLifeIsIgnored(t *testing.T) {
	f := newFleet(1)
	f.pass(5 * second)
	f.hear("b", func(h *wire.Heartbeat) { h.Started = 2 })
	f.hear("b", func(h *wire.Heartbeat) { h.Started, h.Draining = 1, true })
	f.want(t, 2, "after a late goodbye of b's former life")
}

// NATS is away: nothing is heard, not even oneself. The last known number stays; when it is back, all have a period to
// speak again.
func TestSilenceOfTheNetworkIsNotAbsence(t *testing.T) {
	f := newFleet(1)
	f.pass(5*second, "b", "c", "d")
	for range 60 {
		f.now += second
		f.members.Tick(f.now)
	}
	f.want(t, 4, "cut off for a minute")
	f.pass(2*second, "b")
	f.want(t, 4, "soon after the return, c and d not heard yet")
	f.pass(3*second, "b", "c")
	f.want(t, 3, "a period after the return, d is really gone")
}

// Until a period has passed nobody can know: the configured number counts, or more if more are heard.
func TestBeforeAnythingIsKnown(t *testing.T) {
	f := newFleet(4)
	f.want(t, 4, "at the start")
	f.pass(second, "b")
	f.want(t, 4, "after one beat")
	f.pass(period, "b")
	f.want(t, 2, "after a period")
	alone := newFleet(4)
	alone.now = time.Hour
	alone.members.Tick(alone.now)
	alone.want(t, 4, "without any heartbeat, ever")
}

func TestMembersAreBounded(t *testing.T) {
	f := newFleet(1)
	f.pass(5 * second)
	for i := range 10_000 {
		f.hear(fmt.Sprintf("x-%d", i))
	}
	f.want(t, 4096, "after ten thousand names")
	f.pass(2 * period)
	f.want(t, 1, "after they fell silent")
	if names := f.members.Names(); len(names) != 1 || names[0] != "self" {
		t.Errorf("names %q", names)
	}
}
