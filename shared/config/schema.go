package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// checker compares a document with the Go type it is meant for and notes everything that does not fit, each with its
// line. The YAML library stops at the first fault, gives no position for some and lets others pass (1.5 as an integer).
type checker struct {
	file    string
	anchors map[string]ast.Node
	faults  []error
}

func check(file string, root ast.Node, t reflect.Type) error {
	c := &checker{file: file, anchors: map[string]ast.Node{}}
	ast.Walk(c, root)
	c.value(root, t, "")
	return errors.Join(c.faults...)
}

// Visit gathers the anchors that aliases refer to.
func (c *checker) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		c.anchors[a.Name.GetToken().Value] = a.Value
	}
	return c
}

func (c *checker) refuse(n ast.Node, path, format string, args ...any) {
	c.faults = append(c.faults, &Fault{File: c.file, Line: start(n), Field: path, Err: fmt.Errorf(format, args...)})
}

// value checks the node at path against t.
func (c *checker) value(n ast.Node, t reflect.Type, path string) {
	n = c.resolve(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, null := n.(*ast.NullNode); n == nil || null || t.Kind() == reflect.Interface {
		return
	}
	if own := reflect.New(t).Interface(); decodesItself(own) {
		c.own(n, own, path)
		return
	}
	if t == reflect.TypeFor[time.Time]() {
		c.time(n, path)
		return
	}
	if t == reflect.TypeFor[time.Duration]() {
		c.duration(n, path)
		return
	}
	if text, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler); ok {
		if scalar, ok := n.(ast.ScalarNode); !ok {
			c.refuse(n, path, "a text expected")
		} else if err := text.UnmarshalText([]byte(scalar.GetToken().Value)); err != nil {
			c.refuse(n, path, "%w", err)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		c.mapping(n, path, func(e *ast.MappingValueNode, key string) { c.field(e, key, t, path) })
	case reflect.Map:
		c.mapping(n, path, func(e *ast.MappingValueNode, key string) { c.value(e.Value, t.Elem(), joinPath(path, key)) })
	case reflect.Slice, reflect.Array:
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			c.refuse(n, path, "a list expected")
			return
		}
		for i, item := range list.Values {
			c.value(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		c.scalar(n, t, path)
	}
}

// own lets a type that reads YAML itself judge a node: only those that read nodes can be asked. Faults that it finds in parts of
// the node (see DecodeNode) keep their lines.
func (c *checker) own(n ast.Node, into any, path string) {
	reader, ok := into.(yaml.NodeUnmarshaler)
	if !ok {
		return
	}
	for _, err := range flatten(reader.UnmarshalYAML(n)) {
		fault := Fault{File: c.file, Line: start(n), Field: path, Err: err}
		var inner *Fault
		if errors.As(err, &inner) {
			fault.Field, fault.Err = joinPath(path, inner.Field), inner.Err
			if inner.Line > 0 {
				fault.Line = inner.Line
			}
		}
		c.faults = append(c.faults, &fault)
	}
}

func (c *checker) time(n ast.Node, path string) {
	text := n.GetToken().Value
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		c.refuse(n, path, "a time expected, such as 2027-01-31T18:00:00Z")
	}
}

func (c *checker) duration(n ast.Node, path string) {
	text, ok := n.(*ast.StringNode)
	if !ok {
		c.refuse(n, path, `a duration with its unit expected, as in "250ms" or "1m30s"`)
		return
	}
	if _, err := time.ParseDuration(text.Value); err != nil {
		c.refuse(n, path, `%q is no duration: give a number with its unit, as in "250ms" or "1m30s"`, text.Value)
	}
}

func (c *checker) scalar(n ast.Node, t reflect.Type, path string) {
	_, isInt := n.(*ast.IntegerNode)
	_, isFloat := n.(*ast.FloatNode)
	switch t.Kind() {
	case reflect.Bool:
		if _, ok := n.(*ast.BoolNode); !ok {
			c.refuse(n, path, "true or false expected")
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		// 010 would be read as eight, and a number that does not fit be cut.
		if !isInt || !decimal.MatchString(n.GetToken().Value) {
			c.refuse(n, path, "a whole number expected")
		} else if !fits(n.GetToken().Value, t) {
			c.refuse(n, path, "the number is too large")
		}
	case reflect.Float32, reflect.Float64:
		if !isInt && !isFloat {
			c.refuse(n, path, "a number expected")
		}
	case reflect.String:
		if _, ok := n.(ast.ScalarNode); !ok {
			c.refuse(n, path, "a text expected")
		}
	}
}

// decimal is the one form of a whole number.
var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

func fits(text string, t reflect.Type) bool {
	var err error
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64 {
		_, err = strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, t.Bits())
	} else {
		_, err = strconv.ParseInt(text, 10, t.Bits())
	}
	return err == nil
}

// mapping calls each for every entry, also of mappings merged in by <<.
func (c *checker) mapping(n ast.Node, path string, each func(e *ast.MappingValueNode, key string)) {
	var entries []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		c.refuse(n, path, "a mapping expected")
		return
	}
	for _, e := range entries {
		if _, merge := e.Key.(*ast.MergeKeyNode); merge {
			if merged := c.resolve(e.Value); merged != nil && merged != n {
				c.mapping(merged, path, each)
			}
			continue
		}
		each(e, e.Key.GetToken().Value)
	}
}

// field checks one entry of the mapping at path against the struct's field of that name.
func (c *checker) field(e *ast.MappingValueNode, key string, t reflect.Type, path string) {
	fields := fieldsOf(t)
	if ft, ok := fields[key]; ok {
		c.value(e.Value, ft, joinPath(path, key))
		return
	}
	if near := nearest(key, fields); near != "" {
		c.refuse(e, joinPath(path, key), "unknown field, did you mean %s?", near)
		return
	}
	c.refuse(e, joinPath(path, key), "unknown field")
}

// resolve follows anchors, tags and aliases to the node that holds the value.
func (c *checker) resolve(n ast.Node) ast.Node {
	for range 100 { // an alias inside its own anchor never ends
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.TagNode:
			n = at.Value
		case *ast.AliasNode:
			n = c.anchors[at.Value.GetToken().Value]
		default:
			return n
		}
	}
	return nil
}

// known are the fields of the types met so far: a rules file has a hundred thousand values of few types.
var known sync.Map

// fieldsOf are the struct's fields by their YAML names.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if fields, ok := known.Load(t); ok {
		return fields.(map[string]reflect.Type)
	}
	fields := listFields(t)
	known.Store(t, fields)
	return fields
}

func listFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case name == "-" || (!f.IsExported() && !f.Anonymous):
		case strings.Contains(options, "inline"):
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				for name, ft := range fieldsOf(inner) {
					fields[name] = ft
				}
			}
		case name == "":
			fields[strings.ToLower(f.Name)] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

// decodesItself tells whether the type that v points to brings its own reading of YAML.
func decodesItself(v any) bool {
	switch v.(type) {
	case yaml.BytesUnmarshaler, yaml.InterfaceUnmarshaler, yaml.NodeUnmarshaler,
		yaml.BytesUnmarshalerContext, yaml.InterfaceUnmarshalerContext, yaml.NodeUnmarshalerContext:
		return true
	}
	return false
}

// nearest is the known name at most two edits away from name, or "".
func nearest(name string, fields map[string]reflect.Type) string {
	best, found := 3, ""
	for known := range fields {
		if d := edits(name, known); d < best || (d == best && known < found) {
			best, found = d, known
		}
	}
	return found
}

// edits is the Levenshtein distance of two names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
