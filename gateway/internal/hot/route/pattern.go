package route

import (
	"fmt"
	"strings"
)

type kind uint8

const (
	literal  kind = iota
	wildcard      // {name}: one segment, not empty
	rest          // {name...}, or the slash a pattern ends in
)

// segment is one part of a pattern. The text of a literal is in normal form; that of a wildcard is its name.
type segment struct {
	kind kind
	text string
}

// parsePattern reads the path of a pattern in ServeMux's syntax. odd is what the pattern's literals need to be allowed.
func parsePattern(pattern string) (segments []segment, odd Oddities, err error) {
	names := map[string]bool{}
	parts := strings.Split(pattern[1:], "/")
	for i, part := range parts {
		last := i == len(parts)-1
		if part == "" && last {
			return append(segments, segment{kind: rest}), odd, nil
		}
		if !strings.ContainsAny(part, "{}") {
			text, o, err := normalLiteral(part)
			if err != nil {
				return nil, 0, fmt.Errorf("%q: %w", pattern, err)
			}
			segments, odd = append(segments, segment{kind: literal, text: text}), odd|o
			continue
		}
		name, ok := strings.CutPrefix(part, "{")
		name, closed := strings.CutSuffix(name, "}")
		if !ok || !closed || strings.ContainsAny(name, "{}") {
			return nil, 0, fmt.Errorf("%q: a wildcard must be a whole segment, such as {id}", pattern)
		}
		if name == "$" {
			if !last {
				return nil, 0, fmt.Errorf("%q: {$} must be last", pattern)
			}
			return append(segments, segment{kind: literal, text: ""}), odd, nil
		}
		k := wildcard
		if n, many := strings.CutSuffix(name, "..."); many {
			if name, k = n, rest; !last {
				return nil, 0, fmt.Errorf("%q: {%s...} must be last", pattern, n)
			}
		}
		if name == "" || names[name] {
			return nil, 0, fmt.Errorf("%q: wildcards need names that differ", pattern)
		}
		names[name] = true
		segments = append(segments, segment{kind: k, text: name})
	}
	return segments, odd, nil
}

// normalLiteral refuses literals that no normal path holds, since their route could never be reached.
func normalLiteral(part string) (string, Oddities, error) {
	normal, odd, err := Normalize("/" + part)
	if err != nil {
		return "", 0, fmt.Errorf("malformed escape in %q", part)
	}
	if normal == "/" || odd&EncodedDots != 0 {
		return "", 0, fmt.Errorf("segment %q is unreachable: paths are matched after empty and dot segments are resolved", part)
	}
	return normal[1:], odd, nil
}

// muxPattern is the pattern in normal form, for the search for contradictions.
func muxPattern(segments []segment) string {
	var b strings.Builder
	for i, s := range segments {
		b.WriteByte('/')
		switch {
		case s.kind == literal && s.text == "" && i == len(segments)-1:
			b.WriteString("{$}")
		case s.kind == wildcard:
			b.WriteString("{" + s.text + "}")
		case s.kind == rest && s.text != "":
			b.WriteString("{" + s.text + "...}")
		case s.kind == literal:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// Values are what the wildcards of a route's pattern stand for in a path in normal form, by name, still escaped.
func (r *Route) Values(path string) map[string]string {
	values := map[string]string{}
	left := path[1:]
	for _, s := range r.segments {
		if s.kind == rest {
			if s.text != "" {
				values[s.text] = left
			}
			break
		}
		text, after, _ := strings.Cut(left, "/")
		if s.kind == wildcard {
			values[s.text] = text
		}
		left = after
	}
	return values
}
