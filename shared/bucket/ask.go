package bucket

import "strconv"

// appendAsk writes l the way lua/prelude.lua's parse_ask reads it: "rev|rule|floor moved cost owed ahead", and " late" where
// any share is.
func appendAsk(dst []byte, l *Limit) []byte {
	dst = strconv.AppendInt(dst, l.Revision.Epoch, 10)
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
