package sim

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// A region whose Redis comes back empty has the share again that had moved to it, within seconds and with an empty bucket:
// together the regions never pass the limit, and little is refused.
func TestLostRedisLearnsItsShareAgain(t *testing.T) {
	s := cut(t, "S1b", 5*time.Minute)
	s.Faults = []Fault{{Kind: DataLost, Region: "us", From: 4 * time.Minute}}
	p, err := newStrategy(NamePartidor)
	if err != nil {
		t.Fatal(err)
	}
	strategy := p.(*Partidor)
	var moved, atFloor []limit.Share
	w := &watched{Partidor: strategy, at: map[time.Duration]func(){
		239 * time.Second:        func() { moved = append(moved, strategy.Shares()...) },
		240*time.Second + s.Step: func() { atFloor = append(atFloor, strategy.Shares()...) },
	}}
	o := run(&s, 7, w, nil)
	if moved[1] <= 300_000 {
		t.Fatalf("share of us before the loss %d: nothing had moved to it", moved[1])
	}
	if floor := strategy.nodes[1].state.Floor; atFloor[1] != floor {
		t.Errorf("share of us after the loss %d, want the floor %d", atFloor[1], floor)
	}
	shares := strategy.Shares()
	if sum := shares[0] + shares[1]; sum != limit.Whole {
		t.Errorf("shares %v add up to %d", shares, sum)
	}
	if got := strategy.nodes[1].state.Incarnation; got != 2 {
		t.Errorf("incarnation %d, want 2", got)
	}
	if o.Depth >= 1 || o.Efficiency() < 0.99 {
		t.Errorf("over-admission %v tokens, efficiency %.4f", o.Depth, o.Efficiency())
	}
}

// watched runs a function at some steps of a run.
type watched struct {
	*Partidor
	at map[time.Duration]func()
}

func (w *watched) Step() {
	if fn := w.at[w.w.now()]; fn != nil {
		fn()
	}
}
