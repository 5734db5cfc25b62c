package rulesfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"partidor.dev/partidor/shared/limit"
)

// fault is one thing wrong with a file, and where: a section, an entry of it (an index or a name) and perhaps a field.
type fault struct {
	section string
	index   int    // of an entry in a list, else −1
	name    string // of an entry in a mapping, else ""
	err     error  // begins with the field's name where it is about one field
}

func (f fault) path() string {
	switch {
	case f.index >= 0:
		return fmt.Sprintf("%s[%d]", f.section, f.index)
	case f.name != "":
		return f.section + "." + f.name
	}
	return f.section
}

// faults of the whole file, in its order.
func (f *File) faults() (all []fault) {
	section := func(name string, err error) {
		if err != nil {
			all = append(all, fault{section: name, index: -1, err: err})
		}
	}
	entry := func(name string, i int, err error) {
		for _, e := range split(err) {
			if e != nil {
				all = append(all, fault{section: name, index: i, err: e})
			}
		}
	}
	if f.Revision < 0 {
		section("revision", errors.New("must not be negative"))
	}
	all = append(all, f.regionFaults()...)
	if f.Default != nil {
		section("default", f.defaultFault())
	}
	rules := make(map[[2]string]int, len(f.Rules))
	for i := range f.Rules {
		r := &f.Rules[i]
		entry("rules", i, r.Validate())
		if first, twice := rules[[2]string{r.Tenant, r.Route}]; twice {
			entry("rules", i, fmt.Errorf("route: tenant %q and route %q have a rule already, rules[%d]", r.Tenant, r.Route, first))
		} else {
			rules[[2]string{r.Tenant, r.Route}] = i
		}
	}
	all = append(all, f.shardFaults()...)
	tenants := make(map[string]bool, len(f.Tenants))
	for i, t := range f.Tenants {
		entry("tenants", i, t.validate())
		if tenants[t.ID] {
			entry("tenants", i, fmt.Errorf("id: %q is listed twice", t.ID))
		}
		tenants[t.ID] = true
	}
	keys := make(map[[32]byte]bool, len(f.APIKeys))
	for i := range f.APIKeys {
		k := &f.APIKeys[i]
		if err := k.validate(); err != nil {
			entry("api_keys", i, err)
			continue
		}
		if keys[k.Hash()] {
			entry("api_keys", i, errors.New("sha256: the key is listed twice"))
		}
		keys[k.Hash()] = true
	}
	return all
}

func (f *File) regionFaults() (all []fault) {
	if len(f.Regions) == 0 {
		return nil
	}
	sum := limit.Share(0)
	for _, name := range slices.Sorted(maps.Keys(f.Regions)) {
		r := f.Regions[name]
		if err := ValidateRegionName(name); err != nil {
			all = append(all, fault{section: "regions", index: -1, name: name, err: err})
		}
		if r.Floor != nil && *r.Floor > r.Base {
			all = append(all, fault{section: "regions", index: -1, name: name, err: fmt.Errorf("floor: %s is above the base share %s", *r.Floor, r.Base)})
		}
		sum += limit.Share(r.Base)
	}
	if sum != limit.Whole {
		all = append(all, fault{section: "regions", index: -1, err: fmt.Errorf("shares add up to %s, must be exactly 100%%", Part(sum))})
	}
	return all
}

func (f *File) defaultFault() error {
	if f.Default.Tenant != "" || f.Default.Route != "" {
		return errors.New("names neither tenant nor route: it holds where no rule matches")
	}
	if f.Default.ExpiresAt != nil {
		return errors.New("expires_at: the default has no end, as nothing would hold after it")
	}
	r := *f.Default
	r.Tenant, r.Route = limit.Wildcard, limit.Wildcard
	return r.Validate()
}

func (t *Tenant) validate() error {
	var errs []error
	errs = append(errs, limit.ValidateName("id", t.ID))
	if t.Plan != "" {
		errs = append(errs, limit.ValidateName("plan", t.Plan))
	}
	return errors.Join(errs...)
}

func (k *APIKey) validate() error {
	if err := limit.ValidateName("tenant", k.Tenant); err != nil {
		return err
	}
	if (k.Key == "") == (k.SHA256 == "") {
		return errors.New("sha256: give either sha256 or key")
	}
	if k.SHA256 != "" {
		if raw, err := hex.DecodeString(k.SHA256); err != nil || len(raw) != 32 {
			return errors.New("sha256: must be 64 hex digits")
		}
	}
	return nil
}

// line of the fault in the file: of its field where the error names one that is there, else of its entry, else of its section.
func (f fault) line(root ast.Node) int {
	node, line := child(root, f.section, 1)
	switch list := node.(type) {
	case *ast.SequenceNode:
		if f.index >= 0 && f.index < len(list.Values) {
			node = list.Values[f.index]
			line = node.GetToken().Position.Line
		}
	default:
		if f.name != "" {
			node, line = child(node, f.name, line)
		}
	}
	field, _, ok := strings.Cut(f.err.Error(), ":")
	if ok {
		_, line = child(node, field, line)
	}
	return line
}

// child of a mapping by name, and its line; line itself where there is none.
func child(node ast.Node, name string, line int) (ast.Node, int) {
	var values []*ast.MappingValueNode
	switch m := node.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	}
	for _, v := range values {
		if v.Key.GetToken().Value == name {
			return v.Value, v.Key.GetToken().Position.Line
		}
	}
	return node, line
}
