package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
)

// reportFields is how many strings lua/rights.lua's report holds.
const reportFields = 21

// parseReport reads the reply of a script, in the order that lua/rights.lua states.
func parseReport(reply []string, peer string) (rights.Report, error) {
	if len(reply) != reportFields {
		return rights.Report{}, fmt.Errorf("script replied %d fields, want %d", len(reply), reportFields)
	}
	p := parser{fields: reply}
	var r rights.Report
	var ok bool
	if r.Verdict, ok = rights.ParseVerdict(reply[0]); !ok {
		p.fail(0)
	}
	r.Amount = p.integer(1)
	r.Now = time.UnixMicro(p.integer(2))
	r.Tokens = p.number(3)
	r.At = p.integer(4)
	r.Share, r.Base, r.Floor = limit.Share(p.integer(5)), limit.Share(p.integer(6)), limit.Share(p.integer(7))
	r.Held = p.integer(8)
	r.Effective = p.number(9)
	r.Incarnation = p.integer(10)
	r.Pair = rights.Pair{Region: peer, Incarnation: p.integer(11), Epoch: p.integer(12), Opened: p.integer(13) == 1}
	r.Pair.Out = p.sent(14)
	r.Pair.In, r.Pair.Acked = p.received(15), p.received(16)
	if r.Phase, ok = rights.ParsePhase(reply[17]); !ok {
		p.fail(17)
	}
	r.Pair.Answered = p.integer(18) == 1
	r.Waiting, r.Due = limit.Share(p.integer(19)), p.integer(20)
	return r, p.err
}

// parser reads fields by position and keeps the first fault.
type parser struct {
	fields []string
	err    error
}

func (p *parser) fail(i int) {
	if p.err == nil {
		p.err = fmt.Errorf("field %d of rights is unreadable: %q", i, p.fields[i])
	}
}

func (p *parser) integer(i int) int64 {
	v, err := strconv.ParseInt(p.fields[i], 10, 64)
	if err != nil {
		p.fail(i)
	}
	return v
}

func (p *parser) number(i int) float64 {
	v, err := strconv.ParseFloat(p.fields[i], 64)
	if err != nil {
		p.fail(i)
	}
	return v
}

// words reads n whole numbers of one field; a missing field is all zeros.
func (p *parser) words(i, n int) []int64 {
	out := make([]int64, n)
	if p.fields[i] == "" {
		return out
	}
	words := strings.Fields(p.fields[i])
	if len(words) != n {
		p.fail(i)
		return out
	}
	for k, w := range words {
		v, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			p.fail(i)
		}
		out[k] = v
	}
	return out
}

func (p *parser) sent(i int) rights.Sent {
	w := p.words(i, 3)
	return rights.Sent{Share: limit.Share(w[0]), Ride: w[1], Loan: w[2]}
}

func (p *parser) received(i int) rights.Received {
	w := p.words(i, 4)
	return rights.Received{Sent: rights.Sent{Share: limit.Share(w[0]), Ride: w[1], Loan: w[2]}, Refused: w[3]}
}
