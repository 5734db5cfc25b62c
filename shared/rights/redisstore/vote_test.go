package redisstore

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/testenv"
)

// TestVotesAndAgreementsExclude: a peer is agreed to be gone only when nobody of the region has answered it for long enough, and
// is answered no more under the number that was voided then.
func TestVotesAndAgreementsExclude(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) redisconn.Options{
		"plain": func(t *testing.T) redisconn.Options {
			return redisconn.Options{Addrs: []string{testenv.StartRedis(t).Addr}}
		},
		"cluster": func(t *testing.T) redisconn.Options {
			return redisconn.Options{Addrs: testenv.StartRedisCluster(t).Addrs(), Cluster: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			o := start(t)
			o.OpTimeout = 20 * time.Second
			client, err := redisconn.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close() //nolint:errcheck // nothing is left to be written
			s := New(Options{Client: client})
			agree := func(number int64, silence time.Duration) bool {
				t.Helper()
				r, err := s.Agree(ctx, "eu", number, silence)
				if err != nil {
					t.Fatal(err)
				}
				return r.Agreed
			}
			vote := func(number int64, fences bool) int64 {
				t.Helper()
				r, err := s.Vote(ctx, "eu", number, fences)
				if err != nil {
					t.Fatal(err)
				}
				return r.Peer
			}
			if agree(10, -time.Hour) {
				t.Error("agreed upon a region that was never heard")
			}
			if vote(5, false) > 5 || agree(10, -time.Hour) {
				t.Error("agreed upon a region that does not fence")
			}
			if vote(5, true) > 5 || agree(10, time.Hour) {
				t.Error("agreed although it was answered just now")
			}
			if !agree(10, -time.Hour) {
				t.Error("did not agree although it was silent for longer")
			}
			if got := vote(5, true); got != 10 {
				t.Errorf("number 5 was voted for although everything below 10 is void; known %d", got)
			}
			if !agree(11, -time.Hour) {
				t.Error("what is void was counted as answered")
			}
			if got := vote(12, true); got > 12 || agree(13, time.Hour) {
				t.Error("a higher number is answered, and then counts")
			}
		})
	}
}
