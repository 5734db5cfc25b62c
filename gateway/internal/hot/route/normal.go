package route

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Oddities are the ambiguous encodings a path holds, a set of bits in the order of config.Encodings.
type Oddities uint8

// The ambiguous encodings.
const (
	EncodedSlash Oddities = 1 << iota
	EncodedBackslash
	EncodedDots
	ControlBytes
	PathParameters
	NotUTF8
)

// errPath is a path that has no normal form: it does not begin with a slash, or an escape is cut short.
var errPath = errors.New("malformed path")

// Normalize brings an escaped path, as in URL.EscapedPath, into normal form (RFC 3986 §6.2.2, and stricter):
//
//   - a byte that may stand in a path segment stands there itself, every other one is percent-encoded in capitals, so
//     that two normal forms are equal exactly if their segments decode to the same bytes;
//   - dot segments are resolved, never above the root; empty segments are dropped;
//   - an encoded slash or backslash stays encoded and part of its segment.
//
// A path in normal form is returned as it is, without allocation. Normalize is idempotent.
func Normalize(path string) (string, Oddities, error) {
	if !strings.HasPrefix(path, "/") {
		return "", 0, errPath
	}
	if isNormal(path) {
		return path, 0, nil
	}
	out := make([]byte, 0, len(path)+16)
	var odd Oddities
	for rest := path; rest != ""; {
		// rest begins with a slash: cut one segment off.
		segment := rest[1:]
		next := strings.IndexByte(segment, '/')
		if next >= 0 {
			rest, segment = segment[next:], segment[:next]
		} else {
			rest = ""
		}
		last := rest == ""
		start := len(out)
		var err error
		if out, err = appendSegment(append(out, '/'), segment, &odd); err != nil {
			return "", odd, err
		}
		switch seg := out[start+1:]; {
		case len(seg) == 0 && !last:
			out = out[:start]
		case string(seg) == ".":
			if segment != "." {
				odd |= EncodedDots
			}
			out = cut(out, start, last)
		case string(seg) == "..":
			if segment != ".." {
				odd |= EncodedDots
			}
			out = cut(out, max(0, strings.LastIndexByte(string(out[:start]), '/')), last)
		}
	}
	if len(out) == 0 {
		out = append(out, '/')
	}
	return string(out), odd, nil
}

// cut drops everything from start on. A path that ended in a dot segment ends in a slash.
func cut(out []byte, start int, last bool) []byte {
	out = out[:start]
	if last {
		out = append(out, '/')
	}
	return out
}

// appendSegment appends the normal form of one segment and notes its oddities.
func appendSegment(out []byte, segment string, odd *Oddities) ([]byte, error) {
	start := len(out)
	beyondASCII := false
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		if c == '%' {
			if i+2 >= len(segment) {
				return nil, errPath
			}
			hi, lo := unhex(segment[i+1]), unhex(segment[i+2])
			if hi > 15 || lo > 15 {
				return nil, errPath
			}
			c, i = hi<<4|lo, i+2
		}
		switch {
		case c == '/':
			*odd |= EncodedSlash
		case c == '\\':
			*odd |= EncodedBackslash
		case c < 0x20 || c == 0x7f:
			*odd |= ControlBytes
		case c == ';':
			*odd |= PathParameters
		case c >= 0x80:
			beyondASCII = true
		}
		if plain[c] {
			out = append(out, c)
		} else {
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	if beyondASCII && !utf8.Valid(decode(out[start:])) {
		*odd |= NotUTF8
	}
	return out, nil
}

// isNormal tells, in one pass, that path is in normal form and holds nothing odd.
func isNormal(path string) bool {
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '/' {
			if i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.') {
				return false // Perhaps: the slow way decides about names that begin with a dot.
			}
			continue
		}
		if !plain[c] || c == ';' {
			return false
		}
	}
	return true
}

const upperHex = "0123456789ABCDEF"

// plain marks the bytes that stand for themselves in a segment: RFC 3986's pchar.
var plain = func() (t [256]bool) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for _, c := range "-._~!$&'()*+,;=:@" {
		t[c] = true
	}
	return t
}()

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// decode undoes the percent-encoding of a normal form.
func decode(escaped []byte) []byte {
	out := make([]byte, 0, len(escaped))
	for i := 0; i < len(escaped); i++ {
		if escaped[i] == '%' {
			out = append(out, unhex(escaped[i+1])<<4|unhex(escaped[i+2]))
			i += 2
			continue
		}
		out = append(out, escaped[i])
	}
	return out
}

// Decode is the decoded spelling of a path in normal form, as URL.Path holds it.
func Decode(normal string) string {
	if strings.IndexByte(normal, '%') < 0 {
		return normal
	}
	return string(decode([]byte(normal)))
}
