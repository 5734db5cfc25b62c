package bucket

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"partidor.dev/partidor/shared/limit"
)

// Finding is what a decision found wrong with a bucket.
type Finding struct {
	Key limit.Key
	// Broken: something unreadable was there and has been thrown away.
	Broken bool
	// Lost: the key has moved and its rights are missing or unreadable; the region's floor counts until they are recovered.
	Lost bool
}

// parseReply reads one line of lua/take.lua's reply to limits, asked under a generation of sources.
func parseReply(line string, limits []Limit, generation int64) (limit.Decision, Finding, error) {
	bad := func() (limit.Decision, Finding, error) {
		return limit.Decision{}, Finding{}, fmt.Errorf("unreadable reply %.200q", line)
	}
	outcome, rest, ok := strings.Cut(line, " ")
	if !ok {
		return bad()
	}
	var o limit.Outcome
	switch outcome {
	case "A":
	case "R":
		o = limit.Refused
	case "L":
		o = limit.TooLarge
	default:
		return bad()
	}
	word, rest, _ := strings.Cut(rest, " ")
	at, err := strconv.Atoi(word)
	if err != nil || at < 0 || at >= len(limits) {
		return bad()
	}
	l := &limits[at]
	word, rest, _ = strings.Cut(rest, " ")
	tokens, ok := parseFloat(word)
	if !ok {
		return bad()
	}
	f := fields{numbers: l.numbers(), revision: l.Revision, share: -1}
	for rest != "" {
		word, rest, _ = strings.Cut(rest, " ")
		if !f.read(word) {
			return bad()
		}
	}
	s := f.numbers.Slice(Rights{Moved: f.share >= 0, Share: f.share}, false)
	if f.share >= 0 {
		s.Capacity = f.capacity
	}
	d := s.decision(o, tokens, l.Cost)
	if f.numbers.Algorithm != limit.TokenBucket {
		d = s.windowDecision(o, tokens, f.wait, f.reset)
	}
	d.Key, d.Rule, d.Revision, d.Ahead = l.Key, l.Rule, f.revision, f.ahead
	if f.revision != l.Revision {
		d.Revision = own(f.revision, generation)
		d.Rule = f.numbers.Rule(l.Rule, d.Revision)
	}
	return d, Finding{Key: l.Key, Broken: f.broken, Lost: f.lost}, nil
}

// fields are the marked words of a reply.
type fields struct {
	share        limit.Share
	capacity     float64
	wait, reset  float64
	ahead        int64
	numbers      Numbers
	revision     limit.Revision
	broken, lost bool
}

// read takes one marked word; marks it does not know are ignored, so that scripts may say more than this client reads.
func (f *fields) read(word string) bool {
	if word == "" {
		return false
	}
	text := word[1:]
	var err error
	switch word[0] {
	case 's':
		var v int64
		v, err = strconv.ParseInt(text, 10, 64)
		f.share = limit.Share(v)
		return err == nil && v >= 0 && f.share <= limit.Whole
	case 'e':
		var ok bool
		f.capacity, ok = parseFloat(text)
		return ok && f.capacity >= 0
	case 'w', 'r':
		us, ok := parseFloat(text)
		if word[0] == 'w' {
			f.wait = us
		} else {
			f.reset = us
		}
		return ok && us >= 0
	case 'g':
		f.ahead, err = strconv.ParseInt(text, 10, 64)
		return err == nil && f.ahead >= 0
	case 'v':
		f.revision, err = limit.ParseRevision(text)
	case 'u':
		f.numbers, err = parseNumbers(text, ',')
	case 'x':
		f.broken = true
	case 'l':
		f.lost = true
	}
	return err == nil
}

func parseFloat(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}
