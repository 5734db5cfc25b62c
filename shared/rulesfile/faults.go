package rulesfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/limit"
)

// note takes up what is wrong at a place of the file. The errors of rules, tenants and keys begin with the name of their field.
func note(all *config.Faults, at string, err error) {
	for _, e := range split(err) {
		if e == nil {
			continue
		}
		if field, reason, ok := strings.Cut(e.Error(), ": "); ok && fieldName.MatchString(field) {
			all.Add(at+"."+field, "%s", reason)
		} else {
			all.Add(at, "%w", e)
		}
	}
}

var fieldName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// faults of the whole file, in its order.
func (f *File) faults(all *config.Faults) {
	entry := func(name string, i int, err error) { note(all, fmt.Sprintf("%s[%d]", name, i), err) }
	if f.Revision < 0 {
		all.Add("revision", "must not be negative")
	}
	f.regionFaults(all)
	if f.Default != nil {
		note(all, "default", f.defaultFault())
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
	f.shardFaults(all)
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
}

func (f *File) regionFaults(all *config.Faults) {
	if len(f.Regions) == 0 {
		return
	}
	sum := limit.Share(0)
	for _, name := range slices.Sorted(maps.Keys(f.Regions)) {
		r := f.Regions[name]
		if err := ValidateRegionName(name); err != nil {
			all.Add("regions."+name, "%w", err)
		}
		if r.Floor != nil && *r.Floor > r.Base {
			all.Add("regions."+name+".floor", "%s is above the base share %s", *r.Floor, r.Base)
		}
		sum += limit.Share(r.Base)
	}
	if sum != limit.Whole {
		all.Add("regions", "shares add up to %s, must be exactly 100%%", Part(sum))
	}
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
