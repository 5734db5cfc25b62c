package headers

import (
	"net/http"
	"strconv"

	"partidor.dev/partidor/shared/limit"
)

// The names of the headers as http.Header holds them.
const (
	headerLimit     = "X-Ratelimit-Limit"
	headerRemaining = "X-Ratelimit-Remaining"
	headerReset     = "X-Ratelimit-Reset"
	headerPolicy    = "Ratelimit-Policy"
	headerRateLimit = "Ratelimit"
)

// Speaks tells whether the headers speak of the decision: it has a limit that is enforced and not hidden, and there is
// something to say of what is left, or of when to come back.
func Speaks(d *limit.Decision) bool {
	if d.Rule == nil || d.Rule.HideHeaders {
		return false
	}
	return d.Source != limit.SourceRule && d.Rule.Mode == limit.Enforce && (d.Outcome != limit.Unable || d.RetryAfter > 0)
}

// Set writes the five headers of a decision into h. The X- headers replace those that are there, which an upstream
// wrote about some limit of its own; our items go behind an upstream's in the list fields, and replace one of the same
// name. Beyond the values and the slice that holds them nothing is allocated.
func Set(h http.Header, d *limit.Decision) {
	if !Speaks(d) {
		return
	}
	n := numbersOf(d)
	var array [192]byte
	buf := array[:0]
	var ends [5]int
	buf = strconv.AppendInt(buf, n.quota, 10)
	ends[0] = len(buf)
	buf = strconv.AppendInt(buf, n.remaining, 10)
	ends[1] = len(buf)
	buf = strconv.AppendInt(buf, n.reset, 10)
	ends[2] = len(buf)
	buf = AppendName(buf, d.Key.Route)
	name := len(buf) - ends[2]
	buf = append(buf, ";q="...)
	buf = appendItem(buf, n.quota)
	buf = append(buf, ";w="...)
	buf = appendItem(buf, n.window)
	ends[3] = len(buf)
	buf = append(buf, buf[ends[2]:ends[2]+name]...)
	buf = append(buf, ";r="...)
	buf = appendItem(buf, n.remaining)
	buf = append(buf, ";t="...)
	buf = appendItem(buf, n.spend)
	ends[4] = len(buf)

	all := string(buf)
	values := make([]string, 5)
	start := 0
	for i, end := range ends {
		values[i], start = all[start:end], end
	}
	h[headerLimit] = values[0:1:1]
	h[headerRemaining] = values[1:2:2]
	h[headerReset] = values[2:3:3]
	putItem(h, headerPolicy, values[3:4:4], name)
	putItem(h, headerRateLimit, values[4:5:5], name)
}

// appendItem appends a number of a list field, which more than 15 digits would make unreadable as a whole.
func appendItem(dst []byte, n int64) []byte { return strconv.AppendInt(dst, min(n, mostItem), 10) }

// putItem puts our item, whose first bytes are its name, behind those of the list that is there.
func putItem(h http.Header, field string, ours []string, name int) {
	theirs := h[field]
	if len(theirs) == 0 {
		h[field] = ours
		return
	}
	kept := make([]string, 0, len(theirs)+1)
	for _, line := range theirs {
		if line = withoutItem(line, ours[0][:name]); line != "" {
			kept = append(kept, line)
		}
	}
	h[field] = append(kept, ours[0])
}

// AppendName appends a policy's name as a string of structured fields (RFC 9651 §3.3.3). Bytes that may not stand there
// are percent-encoded.
func AppendName(dst []byte, name string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
