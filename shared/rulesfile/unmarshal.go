package rulesfile

import (
	"encoding"
	"fmt"
	"regexp"
	"time"

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

// decimal is the one form of a whole number: 010 would be read as eight, 0x10 as sixteen.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// plainField refuses what the library would read as something else than what stands there.
func plainField(name string, value ast.Node) error {
	text := value.GetToken().Value
	switch {
	case integers[name] && (value.Type() != ast.IntegerType || !decimal.MatchString(text)):
		return fmt.Errorf("%s: %s, must be a whole number", name, value)
	case name == "refill_period_seconds" && text == "0":
		return errPeriodZero
	case name == "expires_at" && value.Type() != ast.NullType:
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			if _, err := time.Parse(time.DateOnly, text); err != nil {
				return fmt.Errorf("expires_at: %s, must be a time such as 2027-01-31T18:00:00Z", value)
			}
		}
	}
	return nil
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
		if err := plainField(name, v.Value); err != nil {
			return at(v.Value, err)
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
