package bucket

import (
	"strconv"

	"partidor.dev/partidor/shared/limit"
)

// appendAsk writes l the way lua/prelude.lua's parse_ask reads it: "rev|rule|floor moved cost owed ahead", and " late" where
// any share is. generation is that of the source of l's revision.
func appendAsk(dst []byte, l *Limit, generation int64) []byte {
	dst = strconv.AppendInt(dst, l.Revision.Epoch+generation*generationStep, 10)
	dst = strconv.AppendInt(append(dst, '.'), l.Revision.Number, 10)
	n := l.numbers()
	dst = n.appendText(append(dst, '|'), ' ')
	dst = strconv.AppendInt(append(dst, '|'), int64(l.Floor), 10)
	if l.Moved {
		dst = append(dst, " 1 "...)
	} else {
		dst = append(dst, " 0 "...)
	}
	dst = strconv.AppendInt(dst, l.Cost, 10)
	dst = strconv.AppendInt(append(dst, ' '), l.Owed, 10)
	dst = strconv.AppendInt(append(dst, ' '), max(0, l.Ahead), 10)
	if l.Late > 0 {
		dst = strconv.AppendInt(append(dst, ' '), int64(l.Late), 10)
	}
	return dst
}

// generationStep is what a generation adds to the epochs of its revisions in Redis: more than any source's own ever reach.
const generationStep = 1 << 32

// own is a revision as it is kept in Redis, in the terms of a caller of generation. One of a later generation stays above all of
// the caller's.
func own(r limit.Revision, generation int64) limit.Revision {
	if above := generation * generationStep; r.Epoch >= above {
		r.Epoch -= above
	}
	return r
}
