package app

import (
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// TestBaseSplitChangesInTwoSteps (PROTOCOL R15): the smaller is published at once, the larger when every instance of every
// region says that it serves by that.
func TestBaseSplitChangesInTwoSteps(t *testing.T) {
	w := newWorld(t)
	url, _ := w.start(t, "one")
	w.traffic(t, map[string]float64{"eu": 1, "us": 1})
	w.exec(t, `UPDATE region SET base_share = CASE name WHEN 'eu' THEN 400000 ELSE 600000 END`)
	published := func() (eu, us limit.Share, at limit.Revision) {
		err := w.db.QueryRow(t.Context(), `SELECT e.published_share, u.published_share, r.epoch, r.number FROM region e, region u, ledger_revision r
			WHERE e.name = 'eu' AND u.name = 'us'`).Scan(&eu, &us, &at.Epoch, &at.Number)
		if err != nil {
			t.Fatal(err)
		}
		return eu, us, at
	}
	eventually(t, "the smaller is published", func() bool { eu, us, _ := published(); return eu == 400_000 && us == 300_000 })
	_, _, at := published()
	beat := func(region string, rules limit.Revision, seq uint64) {
		data, err := wire.Encode(&wire.Heartbeat{Rules: rules, Header: wire.Header{Version: wire.Version, Region: region, Instance: region + "-1",
			Sequence: seq, Started: time.Now().UnixMilli()}})
		if err == nil {
			err = w.conn.Publish(wire.SubjectHeartbeat(region), data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// One region has followed, the other serves by what was before.
	beat("eu", at, 1)
	beat("us", limit.Revision{Epoch: at.Epoch, Number: at.Number - 1}, 1)
	cycles := func() int64 {
		var s status
		get(t, url+"/v1/status", &s)
		if s.Cycle == nil {
			return 0
		}
		return s.Cycle.Number
	}
	looked := cycles()
	eventually(t, "the leader has looked again", func() bool { return cycles() >= looked+2 })
	if _, us, _ := published(); us != 300_000 {
		t.Fatalf("us was raised to %d before it had followed", us)
	}
	seq := uint64(2)
	eventually(t, "the new split is published", func() bool {
		beat("eu", at, seq)
		beat("us", at, seq)
		seq++
		eu, us, _ := published()
		return eu == 400_000 && us == 600_000
	})
}
