package collect

import (
	"slices"
	"testing"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/wire"
)

// What regions acknowledge to one another is cumulative, may come late, twice or of another life; of it come the loans of the last
// minutes, those that follow closely as one.
func TestLoansOfAKey(t *testing.T) {
	table, _ := testTable(Options{})
	key := limit.Key{Tenant: "a", Route: "r"}
	for _, region := range []string{"ap", "eu", "us"} {
		newGateway(region, region+"-1", 0).say(table, time.Second, wire.KeyUsage{Tenant: "a", Route: "r", Admitted: 1, Share: 300_000})
	}
	ack := func(at time.Duration, from string, incarnation, loan, refused int64) {
		table.Ack(at, &wire.Ack{Header: wire.Header{Region: "us", Incarnation: incarnation}, To: from, ReceiverIncarnation: 1,
			Rows: []wire.AckRow{{Tenant: "a", Route: "r", Loan: loan, Refused: refused}, {Tenant: "nobody", Route: "r", Loan: 5}}})
	}
	second := time.Second
	ack(10*second, "eu", 1, 500, 0) // what was lent before anybody listened
	ack(11*second, "eu", 1, 512, 2)
	ack(12*second, "ap", 1, 0, 0)
	ack(13*second, "ap", 1, 3, 0)
	ack(14*second, "eu", 1, 520, 2)
	ack(15*second, "eu", 1, 512, 2) // late
	ack(15*second, "eu", 1, 520, 2) // again
	ack(40*second, "eu", 1, 530, 2)
	ack(50*second, "eu", 2, 7, 0) // a new life counts from the start
	ack(51*second, "eu", 2, 8, 0)
	ack(51*second, "mars", 1, 8, 0)
	clock := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	look := func(now time.Duration) [][]Loan {
		var out [][]Loan
		for _, d := range table.Details(now, clock.Add(now), key, []string{"eu", "us"}) {
			out = append(out, d.Loans)
		}
		return out
	}
	want := []Loan{{clock.Add(13 * second), "ap", 3}, {clock.Add(14 * second), "eu", 18}, {clock.Add(40 * second), "eu", 10}, {clock.Add(51 * second), "eu", 1}}
	if got := look(time.Minute); got[0] != nil || !slices.Equal(got[1], want) {
		t.Errorf("loans %v, want %v in us alone", got, want)
	}
	if got := look(DetailsFor + 20*second); len(got[1]) != 2 {
		t.Errorf("a quarter of an hour later: %v, want the last two", got)
	}
	for i := range int64(100) {
		ack(time.Duration(100+20*i)*second, "ap", 1, 4+i, 0)
	}
	if n := len(table.details[keyRegion{table.keys[key], table.regions["us"]}].loans); n > maxLoans {
		t.Errorf("%d loans are kept", n)
	}
}
