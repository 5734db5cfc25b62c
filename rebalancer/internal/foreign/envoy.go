package foreign

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// The parts of envoy-ratelimit's configuration that speak of limits.
type envoyFile struct {
	Domain      string            `yaml:"domain"`
	Descriptors []envoyDescriptor `yaml:"descriptors"`
}

type envoyDescriptor struct {
	Key         string            `yaml:"key"`
	Value       string            `yaml:"value"`
	RateLimit   *envoyLimit       `yaml:"rate_limit"`
	ShadowMode  bool              `yaml:"shadow_mode"`
	Descriptors []envoyDescriptor `yaml:"descriptors"`
}

type envoyLimit struct {
	Unit      string `yaml:"unit"`
	Quota     int64  `yaml:"requests_per_unit"`
	Unlimited bool   `yaml:"unlimited"`
	Replaces  []any  `yaml:"replaces"`
}

// EnvoyKeys say which descriptor keys stand for the tenant and for the route.
type EnvoyKeys struct{ Tenant, Route string }

// Envoy reads one domain of envoy-ratelimit. A descriptor without a value is a wildcard, as it is there.
func Envoy(data []byte, keys EnvoyKeys) (Result, error) {
	var f envoyFile
	if err := yaml.Unmarshal(data, &f); err != nil {
		return Result{}, errors.New("envoy-ratelimit: " + strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	e := envoy{keys: keys}
	e.walk("", f.Descriptors, rulesfile.Rule{})
	return e.Result, nil
}

type envoy struct {
	Result
	keys EnvoyKeys
}

// walk maps descriptors; where holds what the ones around them have said of tenant and route.
func (e *envoy) walk(at string, list []envoyDescriptor, where rulesfile.Rule) {
	for i, d := range list {
		path := strings.TrimPrefix(fmt.Sprintf("%s.descriptors[%d]", at, i), ".")
		value := d.Value
		if value == "" {
			value = limit.Wildcard
		}
		here := where
		switch {
		case d.Key == e.keys.Tenant && here.Tenant == "":
			here.Tenant = value
		case d.Key == e.keys.Route && here.Route == "":
			here.Route = value
		default:
			e.lose(path, "descriptor %q stands for neither tenant (%q) nor route (%q); it and what is below it are left out", d.Key, e.keys.Tenant, e.keys.Route)
			continue
		}
		if len(value) > 1 && strings.HasSuffix(value, "*") {
			e.lose(path, "value %q matches by prefix, which rules do not", value)
			continue
		}
		if d.RateLimit != nil {
			e.limit(path, &d, here)
		}
		e.walk(path, d.Descriptors, here)
	}
}

func (e *envoy) limit(path string, d *envoyDescriptor, rule rulesfile.Rule) {
	if rule.Tenant == "" {
		rule.Tenant = limit.Wildcard
	}
	if rule.Route == "" {
		rule.Route = limit.Wildcard
	}
	if d.RateLimit.Unlimited {
		rule.Mode = limit.Unlimited
		e.add(path, rule)
		return
	}
	unit := strings.ToLower(d.RateLimit.Unit)
	seconds, ok := unitSeconds[unit]
	if !ok {
		e.lose(path, "unit %q is not known", d.RateLimit.Unit)
		return
	}
	if d.RateLimit.Quota == 0 {
		rule.Mode = limit.Block // 0 per unit refuses everything there
		e.add(path, rule)
		return
	}
	if len(d.RateLimit.Replaces) > 0 {
		e.note(path, "replaces is not carried over: here the most specific rule always replaces the others")
	}
	w := window{d.RateLimit.Quota, seconds, unit}.rule()
	w.Tenant, w.Route = rule.Tenant, rule.Route
	if d.ShadowMode {
		w.Mode = limit.Shadow
	}
	e.add(path, w)
}
