package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// lineOf walks down path as far as the document goes and tells the line it got to. The line of a field is its key's.
func lineOf(n ast.Node, path string) int {
	line := n.GetToken().Position.Line
	for path != "" {
		next, at, rest, ok := step(n, path)
		if !ok {
			return line
		}
		n, line, path = next, at, rest
	}
	return line
}

// step goes one key or index down. Keys may hold dots themselves, so the longest key that fits wins.
func step(n ast.Node, path string) (next ast.Node, line int, rest string, ok bool) {
	switch n := n.(type) {
	case *ast.MappingValueNode:
		return stepInto([]*ast.MappingValueNode{n}, path)
	case *ast.MappingNode:
		return stepInto(n.Values, path)
	case *ast.AnchorNode:
		return step(n.Value, path)
	case *ast.TagNode:
		return step(n.Value, path)
	case *ast.SequenceNode:
		number, rest, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(number)
		if !found || err != nil || i < 0 || i >= len(n.Values) {
			return nil, 0, "", false
		}
		return n.Values[i], start(n.Values[i]), strings.TrimPrefix(rest, "."), true
	}
	return nil, 0, "", false
}

func stepInto(entries []*ast.MappingValueNode, path string) (next ast.Node, line int, rest string, ok bool) {
	best := -1
	for _, e := range entries {
		key := e.Key.GetToken().Value
		after, found := strings.CutPrefix(path, key)
		if !found || len(key) <= best || (after != "" && after[0] != '.' && after[0] != '[') {
			continue
		}
		best = len(key)
		next, line, rest, ok = e.Value, e.Key.GetToken().Position.Line, strings.TrimPrefix(after, "."), true
	}
	return next, line, rest, ok
}

// start is the line a node begins on; a mapping's own token is the colon behind its first key.
func start(n ast.Node) int {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return start(n.Values[0])
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken().Position.Line
	}
	return n.GetToken().Position.Line
}

// fieldAt is the path of the key or value that stands at tk, or "" if there is none.
func fieldAt(root ast.Node, tk *token.Token) string {
	var search func(n ast.Node, path string) (string, bool)
	search = func(n ast.Node, path string) (string, bool) {
		switch n := n.(type) {
		case *ast.MappingNode:
			for _, e := range n.Values {
				if found, ok := search(e, path); ok {
					return found, true
				}
			}
		case *ast.MappingValueNode:
			below := joinPath(path, n.Key.GetToken().Value)
			if same(n.Key.GetToken(), tk) || same(n.GetToken(), tk) {
				return below, true
			}
			return search(n.Value, below)
		case *ast.SequenceNode:
			for i, e := range n.Values {
				if found, ok := search(e, fmt.Sprintf("%s[%d]", path, i)); ok {
					return found, true
				}
			}
		case *ast.AnchorNode:
			return search(n.Value, path)
		case *ast.TagNode:
			return search(n.Value, path)
		}
		if n != nil && same(n.GetToken(), tk) {
			return path, true
		}
		return "", false
	}
	path, _ := search(root, "")
	return path
}

func same(a, b *token.Token) bool {
	return a != nil && b != nil && a.Position.Offset == b.Position.Offset && a.Position.Line == b.Position.Line
}
