package route

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"partidor.dev/partidor/gateway/internal/config"
)

func compile(t *testing.T, routes ...config.Route) *Table {
	t.Helper()
	table, err := Compile(routes)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func fixture(t *testing.T) *Table {
	return compile(t,
		config.Route{ID: "items", Methods: []string{"GET"}, Path: "/v1/items"},
		config.Route{ID: "item", Path: "/v1/items/{id}"},
		config.Route{ID: "me", Path: "/v1/items/@me"},
		config.Route{ID: "up", Methods: []string{"POST"}, Path: "/v1/upload"},
		config.Route{ID: "tree", Path: "/tree/"},
		config.Route{ID: "end", Path: "/end/{$}"},
		config.Route{ID: "files", Path: "/files/{path...}", Allow: []string{"encoded_slash"}},
		config.Route{ID: "any-case", Path: "/Shop/{id}", CaseInsensitive: true},
		config.Route{ID: "api", Hosts: []string{"API.example.com"}, Path: "/v1/items"},
		config.Route{ID: "ipv6", Hosts: []string{"::1"}, Path: "/six"},
	)
}

func TestMatch(t *testing.T) {
	table := fixture(t)
	tests := []struct{ method, host, path, want string }{
		{"GET", "h", "/v1/items", "items"},
		{"HEAD", "h", "/v1/items", "items"},
		{"POST", "h", "/v1/items", ""},
		{"GET", "h", "/v1//items", "items"},
		{"GET", "h", "/v1/%69tems", "items"},
		{"GET", "h", "/v1/items/", ""},
		{"GET", "h", "/V1/Items", ""},
		{"GET", "h", "/v1/items/7", "item"},
		{"DELETE", "h", "/v1/items/a%20b", "item"},
		{"GET", "h", "/v1/items/%40me", "me"},
		{"GET", "h", "/tree/", "tree"},
		{"GET", "h", "/tree/a/b", "tree"},
		{"GET", "h", "/tree", ""},
		{"GET", "h", "/end/", "end"},
		{"GET", "h", "/end/x", ""},
		{"GET", "h", "/files/a/b%2fc", "files"},
		{"GET", "h", "/files/", "files"},
		{"GET", "h", "/shop/7", "any-case"},
		{"GET", "h", "/SHOP/7", "any-case"},
		{"POST", "api.example.com", "/v1/items", "api"},
		{"POST", "api.example.com:443", "/v1/items", "api"},
		{"POST", "API.EXAMPLE.COM", "/v1/items", "api"},
		{"POST", "api.example.com.", "/v1/items", "api"},
		{"POST", "api.example.com.:443", "/v1/items", "api"},
		{"POST", "api.example.com", "/v1/upload", "up"},
		{"GET", "[::1]:8080", "/six", "ipv6"},
	}
	for _, tt := range tests {
		m, err := table.Match(tt.host, tt.method, tt.path)
		switch {
		case tt.want == "":
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s %s%s: %v, %v; want not found", tt.method, tt.host, tt.path, m.Route, err)
			}
		case err != nil || m.Route.ID != tt.want:
			t.Errorf("%s %s%s: %+v, %v; want %s", tt.method, tt.host, tt.path, m.Route, err, tt.want)
		}
	}
}

func TestAmbiguousIsRefused(t *testing.T) {
	table := fixture(t)
	for _, path := range []string{
		"/v1/items/a%2fb", "/v1/items/a%5cb", "/v1/%2e%2e/v1/items", "/v1/items/a%00b", "/v1/items;a=1", "/v1/items/7;a=1",
		"/v1/items/%c0%af", "/nowhere%2f", "/files/a%5cb", "*", "",
	} {
		if _, err := table.Match("h", "GET", path); !errors.Is(err, ErrAmbiguous) {
			t.Errorf("%s: %v, want ambiguous", path, err)
		}
	}
}

func TestDefaultRoute(t *testing.T) {
	table := compile(t,
		config.Route{ID: "items", Path: "/v1/items"},
		config.Route{ID: "rest", Default: true},
	)
	for path, want := range map[string]string{"/v1/items": "items", "/": "rest", "/v1/items/": "rest"} {
		if m, err := table.Match("h", "GET", path); err != nil || m.Route.ID != want {
			t.Errorf("%s: %+v, %v; want %s", path, m.Route, err, want)
		}
	}
}

func TestValues(t *testing.T) {
	table := compile(t, config.Route{ID: "r", Path: "/a/{x}/b/{rest...}"})
	m, err := table.Match("h", "GET", "/a/1%20/b/c/d")
	if err != nil {
		t.Fatal(err)
	}
	if v := m.Route.Values(m.Path); v["x"] != "1%20" || v["rest"] != "c/d" || len(v) != 2 {
		t.Errorf("values %v", v)
	}
}

func TestMatchCostsNothing(t *testing.T) {
	table := fixture(t)
	if n := testing.AllocsPerRun(100, func() { _, _ = table.Match("api.example.com:443", "GET", "/v1/items/12345") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Tables in which routes contradict each other, or one can never be reached, are refused.
func TestRefusedTables(t *testing.T) {
	ok := config.Route{ID: "ok", Path: "/v1/items/{id}"}
	tests := []struct {
		name  string
		route config.Route
		want  string
	}{
		{"same pattern", config.Route{Path: "/v1/items/{name}"}, "routes[0]"},
		{"same pattern, other spelling", config.Route{Path: "/v1/%69tems/{id}"}, "already"},
		{"overlap", config.Route{Path: "/v1/{kind}/7"}, "contradicts"},
		{"dot segment", config.Route{Path: "/v1/../items"}, "unreachable"},
		{"empty segment", config.Route{Path: "/v1//items"}, "unreachable"},
		{"encoded dots", config.Route{Path: "/v1/%2e%2e"}, "unreachable"},
		{"encoded slash not allowed", config.Route{Path: "/v1/a%2fb"}, "allow does not list"},
		{"path parameter not allowed", config.Route{Path: "/v1/a;b"}, "allow does not list"},
		{"wildcard in a segment", config.Route{Path: "/v1/a{id}"}, "whole segment"},
		{"rest not last", config.Route{Path: "/v1/{a...}/b"}, "must be last"},
		{"end not last", config.Route{Path: "/v1/{$}/b"}, "must be last"},
		{"name twice", config.Route{Path: "/{a}/x/{a}"}, "names that differ"},
		{"no name", config.Route{Path: "/x/{}"}, "names that differ"},
		{"bad escape", config.Route{Path: "/x/%zz"}, "malformed"},
		{"rewrite to an unknown wildcard", config.Route{Path: "/x/{id}", Rewrite: config.Rewrite{Path: "/y/{name}"}}, "rewrite.path"},
		{"rewrite with dots", config.Route{Path: "/x/{id}", Rewrite: config.Rewrite{Path: "/y/../{id}"}}, "rewrite.path"},
		{"prefix not in normal form", config.Route{Path: "/x/", Rewrite: config.Rewrite{AddPrefix: "//y"}}, "rewrite.add_prefix"},
		{"host with port", config.Route{Hosts: []string{"a:80"}, Path: "/x"}, "hosts[0]"},
		{"host with wildcard", config.Route{Hosts: []string{"*.example.com"}, Path: "/x"}, "hosts[0]"},
		{"host twice in two spellings", config.Route{Hosts: []string{"a.com", "A.com."}, Path: "/x"}, "already"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.route.ID = "bad"
			_, err := Compile([]config.Route{ok, tt.route})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "routes[1].") {
				t.Errorf("error %v, want %q of routes[1]", err, tt.want)
			}
		})
	}
	_, err := Compile([]config.Route{{ID: "all", Path: "/"}, {ID: "rest", Default: true}})
	if err == nil || !strings.Contains(err.Error(), "routes[1].default: unreachable") {
		t.Errorf("default beside a route for everything: %v", err)
	}
	// A literal beside a wildcard is no contradiction, nor a method beside none.
	compile(t, ok, config.Route{ID: "b", Path: "/v1/items/new"}, config.Route{ID: "c", Methods: []string{"PUT"}, Path: "/v1/items"})
}

// On paths in normal form the table answers as ServeMux does, whatever the patterns, but never redirects.
func TestAgreesWithServeMux(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.Custom(func(t *rapid.T) config.Route {
			var parts []string
			n := rapid.IntRange(0, 3).Draw(t, "segments")
			for i := range n {
				parts = append(parts, rapid.SampledFrom([]string{"a", "b", fmt.Sprintf("{w%d}", i)}).Draw(t, "part"))
			}
			end := rapid.SampledFrom([]string{"", "/", "/{$}", "/{rest...}"}).Draw(t, "end")
			if n == 0 && end == "" {
				end = "/"
			}
			r := config.Route{Path: strings.TrimSuffix("/"+strings.Join(parts, "/"), "/") + end}
			if m := rapid.SampledFrom([]string{"", "GET", "POST", "HEAD"}).Draw(t, "method"); m != "" {
				r.Methods = []string{m}
			}
			if h := rapid.SampledFrom([]string{"", "h"}).Draw(t, "host"); h != "" {
				r.Hosts = []string{h}
			}
			return r
		})
		mux := http.NewServeMux()
		var routes []config.Route
		for i, r := range rapid.SliceOfN(pattern, 1, 8).Draw(t, "routes") {
			r.ID = fmt.Sprint(i)
			if table, err := Compile(append(routes[:len(routes):len(routes)], r)); err == nil && table != nil {
				routes = append(routes, r)
				mux.Handle(strings.TrimSpace(strings.Join(r.Methods, "")+" "+strings.Join(r.Hosts, "")+r.Path), named(r.ID))
			}
		}
		if len(routes) == 0 {
			return
		}
		table, err := Compile(routes)
		if err != nil {
			t.Fatal(err)
		}
		path := "/" + strings.Join(rapid.SliceOfN(segment, 0, 4).Draw(t, "path"), "/")
		if path != "/" && rapid.Bool().Draw(t, "slash") {
			path += "/"
		}
		req := httptest.NewRequest(rapid.SampledFrom([]string{"GET", "HEAD", "POST", "PUT"}).Draw(t, "method"), path, nil)
		req.Host = rapid.SampledFrom([]string{"h", "other"}).Draw(t, "host")
		want, got := "", ""
		h, _ := mux.Handler(req)
		if n, ok := h.(named); ok {
			want = string(n)
		} else if fmt.Sprintf("%T", h) == "*http.redirectHandler" {
			return // ServeMux sends /tree to /tree/; we leave that to whoever wants it.
		}
		if m, err := table.Match(req.Host, req.Method, path); err == nil {
			got = m.Route.ID
		}
		if got != want {
			t.Fatalf("%s %s%s: %q, ServeMux says %q; routes %+v", req.Method, req.Host, path, got, want, routes)
		}
	})
}

type named string

func (named) ServeHTTP(http.ResponseWriter, *http.Request) {}

func BenchmarkMatch(b *testing.B) {
	routes := make([]config.Route, 200)
	for i := range routes {
		routes[i] = config.Route{ID: fmt.Sprint(i), Methods: []string{"GET"}, Path: fmt.Sprintf("/v1/things%d/{id}/parts/{part}", i)}
	}
	table, err := Compile(routes)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := table.Match("api.example.com:443", "GET", "/v1/things150/12345/parts/7"); err != nil {
			b.Fatal(err)
		}
	}
}
