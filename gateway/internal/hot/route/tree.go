package route

import "strings"

// node is one segment of a tree of patterns. Precedence is ServeMux's: a literal before a wildcard, a wildcard before a
// rest; contradictions have been refused before a tree is built, so the first match in this order is the most specific.
type node struct {
	literals map[string]*node
	wildcard *node
	// route ends here: the pattern's last segment was this one.
	route *Route
	// rest matches whatever follows, also nothing: {name...} or a pattern that ends in a slash.
	rest *Route
}

// insert puts the segments of a pattern into the tree.
func (n *node) insert(segments []segment, r *Route) {
	for _, s := range segments {
		switch {
		case s.kind == rest:
			n.rest = r
			return
		case s.kind == wildcard:
			if n.wildcard == nil {
				n.wildcard = &node{}
			}
			n = n.wildcard
		default:
			if n.literals == nil {
				n.literals = map[string]*node{}
			}
			if n.literals[s.text] == nil {
				n.literals[s.text] = &node{}
			}
			n = n.literals[s.text]
		}
	}
	n.route = r
}

// find returns the most specific route for path, which begins after the slash in front of its first segment.
func (n *node) find(path string) *Route {
	text, after, more := strings.Cut(path, "/")
	if child := n.literals[text]; child != nil {
		if r := child.next(after, more); r != nil {
			return r
		}
	}
	if n.wildcard != nil && text != "" {
		if r := n.wildcard.next(after, more); r != nil {
			return r
		}
	}
	return n.rest
}

func (n *node) next(after string, more bool) *Route {
	if more {
		return n.find(after)
	}
	return n.route
}
