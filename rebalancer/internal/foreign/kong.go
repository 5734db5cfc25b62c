package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"partidor.dev/partidor/shared/limit"
)

// The parts of Kong's declarative format that speak of limits.
type kongFile struct {
	Services  []kongService  `yaml:"services"`
	Routes    []kongRoute    `yaml:"routes"`
	Consumers []kongConsumer `yaml:"consumers"`
	Plugins   []kongPlugin   `yaml:"plugins"`
}

type kongService struct {
	Name    string       `yaml:"name"`
	Routes  []kongRoute  `yaml:"routes"`
	Plugins []kongPlugin `yaml:"plugins"`
}

type kongRoute struct {
	Name    string       `yaml:"name"`
	Service kongName     `yaml:"service"`
	Plugins []kongPlugin `yaml:"plugins"`
}

type kongConsumer struct {
	Username string       `yaml:"username"`
	CustomID string       `yaml:"custom_id"`
	Plugins  []kongPlugin `yaml:"plugins"`
}

type kongPlugin struct {
	Name     string         `yaml:"name"`
	Enabled  *bool          `yaml:"enabled"`
	Service  kongName       `yaml:"service"`
	Route    kongName       `yaml:"route"`
	Consumer kongName       `yaml:"consumer"`
	Config   map[string]any `yaml:"config"`
}

// kongName is a reference by name: "x", or {name: x}, {username: x}, {id: x}.
type kongName string

// UnmarshalYAML reads both forms.
func (n *kongName) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if unmarshal(&s) == nil {
		*n = kongName(s)
		return nil
	}
	var m map[string]string
	if err := unmarshal(&m); err != nil {
		return err
	}
	for _, key := range []string{"name", "username", "id"} {
		if m[key] != "" {
			*n = kongName(m[key])
		}
	}
	return nil
}

// Kong reads a declarative file (decK's, or kong.yml). A consumer becomes the tenant of its username, a route the route of
// its name; a plugin of a service holds for each of its routes.
func Kong(data []byte) (Result, error) {
	var f kongFile
	if err := yaml.Unmarshal(data, &f); err != nil {
		return Result{}, errors.New("kong: " + strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	k := kong{routes: map[string][]string{}}
	for _, s := range f.Services {
		for _, r := range s.Routes {
			k.routes[s.Name] = append(k.routes[s.Name], r.Name)
		}
	}
	for _, r := range f.Routes {
		k.routes[string(r.Service)] = append(k.routes[string(r.Service)], r.Name)
	}
	// The most specific first, as Kong itself prefers them.
	for i, c := range f.Consumers {
		k.plugins(fmt.Sprintf("consumers[%d]", i), c.Plugins, kongPlugin{Consumer: kongName(c.Username)})
	}
	for i, s := range f.Services {
		for j, r := range s.Routes {
			k.plugins(fmt.Sprintf("services[%d].routes[%d]", i, j), r.Plugins, kongPlugin{Route: kongName(r.Name)})
		}
	}
	for i, r := range f.Routes {
		k.plugins(fmt.Sprintf("routes[%d]", i), r.Plugins, kongPlugin{Route: kongName(r.Name)})
	}
	k.plugins("", f.Plugins, kongPlugin{})
	for i, s := range f.Services {
		k.plugins(fmt.Sprintf("services[%d]", i), s.Plugins, kongPlugin{Service: kongName(s.Name)})
	}
	return k.Result, nil
}

type kong struct {
	Result
	routes map[string][]string // of each service
}

// plugins maps those that limit; scope is where they stand.
func (k *kong) plugins(at string, list []kongPlugin, scope kongPlugin) {
	for i, p := range list {
		path := strings.TrimPrefix(fmt.Sprintf("%s.plugins[%d]", at, i), ".")
		if p.Service == "" {
			p.Service = scope.Service
		}
		if p.Route == "" {
			p.Route = scope.Route
		}
		if p.Consumer == "" {
			p.Consumer = scope.Consumer
		}
		switch {
		case p.Name != "rate-limiting" && p.Name != "rate-limiting-advanced":
			if strings.Contains(p.Name, "limit") {
				k.lose(path, "plugin %s has no counterpart", p.Name)
			}
		case p.Enabled != nil && !*p.Enabled:
			k.note(path, "is disabled, left out")
		default:
			k.limit(path, &p)
		}
	}
}

func (k *kong) limit(path string, p *kongPlugin) {
	by, _ := p.Config["limit_by"].(string)
	if by == "" {
		by, _ = p.Config["identifier"].(string) // rate-limiting-advanced
	}
	if by != "" && by != "consumer" && by != "credential" {
		k.lose(path, "counts by %s; limits by client address belong to the gateway's configuration, others have no counterpart", by)
		return
	}
	windows := kongWindows(p.Config)
	if len(windows) == 0 {
		k.lose(path, "names no limit")
		return
	}
	w := tightest(windows)
	for _, other := range windows {
		if other != w {
			k.note(path, "%d per %s is left out: a key has one limit, kept is %d per %s, which admits least in the long run", other.quota, other.name, w.quota, w.name)
		}
	}
	rule := w.rule()
	rule.HideHeaders, _ = p.Config["hide_client_headers"].(bool)
	if tolerant, said := p.Config["fault_tolerant"].(bool); said && !tolerant {
		rule.OnError = limit.OnErrorDeny
	}
	if kind, _ := p.Config["window_type"].(string); kind == "sliding" {
		rule.Algorithm, rule.Window, rule.WindowSeconds = limit.SlidingWindowCounter, limit.NoCalendar, w.seconds
	}
	rule.Tenant = limit.Wildcard
	if p.Consumer != "" {
		rule.Tenant = string(p.Consumer)
	}
	routes := []string{limit.Wildcard}
	switch {
	case p.Route != "":
		routes = []string{string(p.Route)}
	case p.Service != "":
		if routes = k.routes[string(p.Service)]; len(routes) == 0 {
			k.lose(path, "service %s has no route", p.Service)
		}
		if len(routes) > 1 {
			k.note(path, "counts over all %d routes of service %s there, over each of them here", len(routes), p.Service)
		}
	}
	for _, rule.Route = range routes {
		if rule.Route == "" {
			k.lose(path, "the route has no name")
			continue
		}
		k.add(path, rule)
	}
}

// kongWindows of either plugin.
func kongWindows(config map[string]any) (list []window) {
	for _, unit := range []string{"second", "minute", "hour", "day", "month", "year"} {
		if quota, ok := whole(config[unit]); ok {
			list = append(list, window{quota, unitSeconds[unit], unit})
		}
	}
	limits, _ := config["limit"].([]any)
	sizes, _ := config["window_size"].([]any)
	for i := range min(len(limits), len(sizes)) {
		quota, ok := whole(limits[i])
		size, sized := whole(sizes[i])
		if ok && sized {
			list = append(list, window{quota, size, fmt.Sprintf("%d s", size)})
		}
	}
	return slices.Clip(list)
}

func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case uint64:
		return int64(min(n, limit.MaxTokens+1)), true
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}
