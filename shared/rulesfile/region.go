package rulesfile

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/limit"
)

// Region is one region's base share of every key, the share it never gives away (nil: the rebalancer's parameter), and
// the failure domain it stands in.
type Region struct {
	Base   Part   `yaml:"base" json:"base"`
	Floor  *Part  `yaml:"floor,omitempty" json:"floor,omitempty"`
	Domain string `yaml:"domain,omitempty" json:"domain,omitempty"`
}

// Part is a share, written as parts per million (700000) or as a percentage with at most four decimals (70%, 12.5%).
type Part limit.Share

var percentage = regexp.MustCompile(`^(\d{1,3})(?:\.(\d{1,4}))?%$`)

// ParsePart reads either form; the result is exact, never rounded.
func ParsePart(s string) (Part, error) {
	if m := percentage.FindStringSubmatch(s); m != nil {
		decimals := m[2] + strings.Repeat("0", 4-len(m[2]))
		whole, _ := strconv.ParseInt(m[1], 10, 64)        // at most three digits
		fraction, _ := strconv.ParseInt(decimals, 10, 64) // exactly four
		return bounded(whole*10_000 + fraction)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("share %q, must be parts per million (700000) or a percentage with at most four decimals (70%%)", s)
	}
	return bounded(n)
}

func bounded(n int64) (Part, error) {
	if n < 0 || n > int64(limit.Whole) {
		return 0, fmt.Errorf("share %d, must be from 0 to %d parts per million", n, limit.Whole)
	}
	return Part(n), nil
}

// String is the percentage where it is short, else parts per million.
func (p Part) String() string {
	if p%1000 == 0 {
		return strconv.FormatFloat(math.Round(float64(p)/1000)/10, 'f', -1, 64) + "%"
	}
	return strconv.FormatInt(int64(p), 10)
}

// MarshalYAML writes what String says.
func (p Part) MarshalYAML() (any, error) {
	if s := p.String(); strings.HasSuffix(s, "%") {
		return s, nil
	}
	return int64(p), nil
}

// UnmarshalYAML reads both forms.
func (p *Part) UnmarshalYAML(node ast.Node) error {
	v, err := ParsePart(strings.Trim(node.GetToken().Value, `"'`))
	if err != nil {
		return err
	}
	*p = v
	return nil
}

// UnmarshalYAML reads the short form, a bare share, and the long one.
func (r *Region) UnmarshalYAML(node ast.Node) error {
	switch node.Type() {
	case ast.MappingType, ast.MappingValueType:
		type plain Region
		return config.DecodeNode(node, (*plain)(r))
	default:
		return r.Base.UnmarshalYAML(node)
	}
}

// MarshalYAML writes the short form where it says everything.
func (r Region) MarshalYAML() (any, error) {
	if r.Floor == nil && r.Domain == "" {
		return r.Base.MarshalYAML()
	}
	type plain Region
	return plain(r), nil
}

var regionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ValidateRegionName allows what fits into a NATS subject and a metric label.
func ValidateRegionName(name string) error {
	if !regionName.MatchString(name) {
		return errors.New("region names are 1 to 64 letters, digits, - and _")
	}
	return nil
}
