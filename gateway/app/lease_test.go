package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/wire"
)

// TestGatewayKeepsToItsFloorWithoutALease: three failure domains are declared and nobody answers: of 70 % of a capacity of 100 the
// gateway uses the floor, 10. As soon as another region answers, its share is in force.
func TestGatewayKeepsToItsFloorWithoutALease(t *testing.T) {
	s := newSet(t)
	s.shop(t, "shop-a")
	s.exec(t, `INSERT INTO rate_limit_rule (tenant_id, route_id, capacity, refill_per_second, refill_period_seconds)
		VALUES ('shop-a', 'create-order', 100, 1, 3600)`)
	s.exec(t, `INSERT INTO region (name, base_share, floor_share, failure_domain) VALUES ('eu', 700000, 100000, 'a'), ('us', 300000, 50000, 'b')`)
	s.exec(t, `INSERT INTO parameter (name, value) VALUES ('control_domain', '"c"')`)
	g := start(t, s.config+"\nregion: eu\ninstance: eu-1\n")
	admitted := func() (n int) {
		for range 110 {
			if g.post("shop-a").StatusCode != http.StatusOK {
				return n
			}
			n++
		}
		return n
	}
	if n := admitted(); n != 10 {
		t.Errorf("%d admitted without a lease, the floor's capacity is 10", n)
	}
	conn := s.nats.Conn(t)
	if _, err := conn.Subscribe(wire.SubjectRenew("eu"), func(m *nats.Msg) {
		var r wire.Renewal
		if err := wire.Decode(m.Data, &r); err != nil || !r.Fences || r.Floor != 100_000 {
			t.Errorf("renewal %s: %v", m.Data, err)
			return
		}
		data, err := wire.Encode(&wire.Grant{Header: wire.Header{Region: "us", Instance: "us-1", Started: 1}, To: "eu", ToInstance: r.Instance,
			ToStarted: r.Started, ReceiverIncarnation: r.Incarnation, Stamp: r.Stamp})
		if err == nil {
			err = conn.Publish(wire.SubjectGrant("eu", "us"), data)
		}
		if err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 60*time.Second, "more than the floor is admitted", func() bool {
		s.redis.Client().Del(t.Context(), "rl:{shop-a}:create-order") // a bucket that is missing is full
		return admitted() > 10
	})
}
