package config

import (
	"reflect"
	"strings"
)

// reloadable are the sections that take effect while the gateway runs.
var reloadable = map[string]bool{"identity": true, "addresses": true, "cors": true, "upstreams": true, "routes": true}

// NeedsRestart lists the sections that differ and take effect at the next start only.
func NeedsRestart(running, next *Config) (sections []string) {
	a, b := *running, *next
	for _, s := range []*Server{&a.Server, &b.Server} {
		s.UnderscoreHeaders, s.PassHeaders = nil, nil // Reloadable.
	}
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		field := va.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if field.IsExported() && !reloadable[name] && !reflect.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			sections = append(sections, name)
		}
	}
	return sections
}
