package rulesfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"partidor.dev/partidor/shared/config"
)

// File is a whole rules file. The zero value is an empty one.
type File struct {
	// Revision orders versions of the file: a reader ignores a file that is older than the one it has.
	Revision int64             `yaml:"revision,omitempty" json:"revision,omitempty"`
	Regions  map[string]Region `yaml:"regions,omitempty" json:"regions,omitempty"`
	// Default is the limit where no rule matches; nil means limit.DefaultRule. It names no tenant and no route.
	Default *Rule    `yaml:"default,omitempty" json:"default,omitempty"`
	Rules   []Rule   `yaml:"rules,omitempty" json:"rules,omitempty"`
	Tenants []Tenant `yaml:"tenants,omitempty" json:"tenants,omitempty"`
	APIKeys []APIKey `yaml:"api_keys,omitempty" json:"api_keys,omitempty"`
}

// Empty tells that the file says nothing at all, as one that is just being written does.
func (f *File) Empty() bool {
	return f.Revision == 0 && len(f.Regions)+len(f.Rules)+len(f.Tenants)+len(f.APIKeys) == 0 && f.Default == nil
}

// Tenant is who calls, and the plan it is on.
type Tenant struct {
	ID   string `yaml:"id" json:"id"`
	Plan string `yaml:"plan,omitempty" json:"plan,omitempty"`
}

// APIKey lets a credential stand for a tenant. Exactly one of SHA256 (64 hex digits, what belongs into a file that others
// read) and Key (the credential itself, for demonstrations) is given.
type APIKey struct {
	Tenant   string `yaml:"tenant" json:"tenant"`
	SHA256   string `yaml:"sha256,omitempty" json:"sha256,omitempty"`
	Key      string `yaml:"key,omitempty" json:"-"`
	Disabled bool   `yaml:"disabled,omitempty" json:"disabled,omitempty"`
}

// Hash of the credential. Call Validate first.
func (k *APIKey) Hash() (hash [32]byte) {
	if k.Key != "" {
		return sha256.Sum256([]byte(k.Key))
	}
	_, _ = hex.Decode(hash[:], []byte(k.SHA256)) // Validate has seen it
	return hash
}

// Load reads and checks the file at path.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("rules file: %w", err)
	}
	return Parse(path, data)
}

// Parse reads and checks a file's bytes; name stands in its errors. An unknown or repeated field, a wrong type and
// everything Validate refuses is an error that begins with name:line and the path of the field.
func Parse(name string, data []byte) (*File, error) {
	doc, err := config.Parse(name, data)
	if err != nil {
		return nil, err
	}
	f := new(File)
	if err := doc.Decode(f); err != nil {
		return nil, few(name, err)
	}
	return f, nil
}

// few keeps the first faults of many, enough to work on: a file with one systematic mistake has thousands.
func few(name string, err error) error {
	const most = 20
	all := split(err)
	if len(all) <= most {
		return err
	}
	return errors.Join(append(all[:most:most], fmt.Errorf("%s: and %d more", name, len(all)-most))...)
}

// Validate reports every fault, with the path of its field (see config.Faults).
func (f *File) Validate() error {
	var all config.Faults
	f.faults(&all)
	return all.Err()
}

// Marshal is the file as YAML, rules in order of tenant and route.
func (f *File) Marshal() ([]byte, error) {
	sorted := *f
	sorted.Rules = slices.Clone(f.Rules)
	slices.SortFunc(sorted.Rules, func(a, b Rule) int {
		if c := strings.Compare(a.Tenant, b.Tenant); c != 0 {
			return c
		}
		return strings.Compare(a.Route, b.Route)
	})
	out, err := yaml.Marshal(&sorted)
	if err != nil {
		return nil, fmt.Errorf("write rules file: %w", err)
	}
	return out, nil
}
