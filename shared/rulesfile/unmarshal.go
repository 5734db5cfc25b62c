package rulesfile

import (
	"encoding"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"partidor.dev/partidor/shared/limit"
)

// integers are the fields that are whole numbers. The YAML library would cut 1.5 to 1 and read "60" as 60.
var integers = map[string]bool{
	"capacity": true, "refill_per_second": true, "refill_period_seconds": true, "window_seconds": true, "shards": true,
}

// words are the fields with a fixed vocabulary.
var words = map[string]func() encoding.TextUnmarshaler{
	"algorithm": func() encoding.TextUnmarshaler { return new(limit.Algorithm) },
	"window":    func() encoding.TextUnmarshaler { return new(limit.Calendar) },
	"mode":      func() encoding.TextUnmarshaler { return new(limit.Mode) },
	"on_error":  func() encoding.TextUnmarshaler { return new(limit.OnError) },
}

// UnmarshalYAML is strict: one form for each field, and every refusal has a line.
func (r *Rule) UnmarshalYAML(node ast.Node) error {
	var values []*ast.MappingValueNode
	switch m := node.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	}
	for _, v := range values {
		name := v.Key.GetToken().Value
		if integers[name] && v.Value.Type() != ast.IntegerType {
			return at(v.Value, fmt.Errorf("%s: %s, must be a whole number", name, v.Value))
		}
		if word := words[name]; word != nil {
			if err := word().UnmarshalText([]byte(v.Value.GetToken().Value)); err != nil {
				return at(v.Value, err)
			}
		}
	}
	type plain Rule
	return yaml.NodeToValue(node, (*plain)(r), yaml.Strict())
}
