package app_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// What the rest of the deployment hears of a gateway: cumulative usage of each key, and that it lives, drains and is gone.
func TestReportsAndHeartbeats(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.rule(t, "shop-a", 3, 1, 3600)
	conn := s.nats.Conn(t)
	usage, heartbeats := make(chan *nats.Msg, 1000), make(chan *nats.Msg, 1000)
	for subject, c := range map[string]chan *nats.Msg{wire.SubjectUsage("eu"): usage, wire.SubjectHeartbeat("eu"): heartbeats} {
		if _, err := conn.ChanSubscribe(subject, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	g := start(t, s.config+"\nusage: {interval: 50ms, heartbeat: 50ms}\ninstance: a\n")
	for range 5 {
		g.post("shop-a")
	}
	for {
		var u wire.Usage
		if err := wire.Decode((<-usage).Data, &u); err != nil {
			t.Fatal(err)
		}
		if u.Instance != "a" || u.ElapsedMillis <= 0 {
			t.Errorf("usage %+v", u.Header)
		}
		if len(u.Keys) == 1 && u.Keys[0].Admitted == 3 && u.Keys[0].Refused == 2 && u.Keys[0].Share == limit.Whole {
			break
		}
	}
	g.stop()
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	var last wire.Heartbeat
	for len(heartbeats) > 0 {
		last = wire.Heartbeat{}
		if err := wire.Decode((<-heartbeats).Data, &last); err != nil {
			t.Fatal(err)
		}
	}
	if !last.Draining || last.Rules != (limit.Revision{Epoch: 1, Number: 3}) {
		t.Errorf("the last heartbeat %+v, want draining at revision 1.3", last)
	}
}
