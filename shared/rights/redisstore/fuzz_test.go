package redisstore

import (
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// FuzzParseState: whatever a hash holds, reading it gives a state within bounds or an error, never a panic.
func FuzzParseState(f *testing.F) {
	f.Add("700000", "700000", "35000", "153.4", "1760256000123.456", "1.2", "200 100 1 700000", "1 1 1 0", "100000 1500 3", "0 0 2 1", "fenced")
	f.Add("x", "-1", "", "nan", "inf", "1", "", "1", "1 2", "9223372036854775808 0 0 0", "asleep")
	f.Fuzz(func(t *testing.T, share, base, floor, tokens, ts, rev, rule, peer, out, in, phase string) {
		s, err := parseState(map[string]string{
			"share": share, "base": base, "floor": floor, "tokens": tokens, "ts": ts, "rev": rev, "rule": rule, "incarnation": "1",
			"peer:us": peer, "out:us": out, "in:us": in, "phase": phase,
		})
		if err != nil || !s.Moved {
			return
		}
		if s.Share < 0 || s.Share > limit.Whole || s.Base < 0 || s.Base > limit.Whole || s.Floor < 0 {
			t.Errorf("state out of bounds: %+v", s)
		}
	})
}

// FuzzParseReport: whatever a script replies.
func FuzzParseReport(f *testing.F) {
	f.Add("applied", "1", "153.4", "100000 1500 3", "active")
	f.Fuzz(func(_ *testing.T, verdict, number, level, row, phase string) {
		reply := make([]string, reportFields)
		for i := range reply {
			reply[i] = number
		}
		reply[0], reply[3], reply[9], reply[14], reply[15], reply[16], reply[17] = verdict, level, level, row, row, row, phase
		_, _ = parseReport(reply, "us")
	})
}
