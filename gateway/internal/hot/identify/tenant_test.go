package identify

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// keys knows whom which key belongs to.
type keys map[[32]byte]string

func (k keys) Tenant(hash [32]byte, _ time.Time) (string, bool) {
	id, ok := k[hash]
	return id, ok
}

var known = keys{sha256.Sum256([]byte("k-t1")): "t1", sha256.Sum256([]byte("k-t2")): "t2"}

func identifier(edit func(*config.Identity)) *Identifier {
	var c config.Config
	if edit != nil {
		edit(&c.Identity)
	}
	c.SetDefaults()
	return New(c.Identity)
}

func TestTenant(t *testing.T) {
	apiKey := func(c *config.Identity) { c.Schemes = []string{"ApiKey", "Bearer"} }
	query := func(c *config.Identity) { c.Query = "key" }
	byName := func(c *config.Identity) { c.Mode = config.IdentityHeader }
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	tests := []struct {
		name   string
		edit   func(*config.Identity)
		header http.Header
		query  string
		want   string
		err    error
	}{
		{"the header", nil, header("X-Api-Key", "k-t1"), "", "t1", nil},
		{"spaces around", nil, header("X-Api-Key", " k-t1\t"), "", "t1", nil},
		{"none", nil, nil, "", "", ErrMissing},
		{"an empty one", nil, header("X-Api-Key", ""), "", "", ErrMissing},
		{"unknown", nil, header("X-Api-Key", "k-t3"), "", "", ErrUnknown},
		{"two lines", nil, header("X-Api-Key", "k-t1", "X-Api-Key", "k-t2"), "", "", ErrAmbiguous},
		{"the same in two lines", nil, header("X-Api-Key", "k-t1", "X-Api-Key", "k-t1"), "", "", ErrAmbiguous},
		{"an empty second line", nil, header("X-Api-Key", "k-t1", "X-Api-Key", ""), "", "", ErrAmbiguous},
		{"a list", nil, header("X-Api-Key", "k-t1, k-t2"), "", "", ErrAmbiguous},
		{"header and query", nil, header("X-Api-Key", "k-t1"), "api_key=k-t2", "", ErrAmbiguous},
		{"header and escaped query", nil, header("X-Api-Key", "k-t1"), "a=1&api%5Fkey=k-t2", "", ErrAmbiguous},
		{"query where none is accepted", nil, nil, "api_key=k-t1", "", ErrMissing},
		{"another parameter", nil, header("X-Api-Key", "k-t1"), "my_api_key=1&api_keys=2", "t1", nil},
		{"query", query, nil, "a=1&key=k%2dt1", "t1", nil},
		{"query twice", query, nil, "key=k-t1&key=k-t1", "", ErrAmbiguous},
		{"query with a bad escape", query, nil, "key=%zz", "", ErrMalformed},
		{"scheme", apiKey, header("Authorization", "ApiKey k-t1"), "", "t1", nil},
		{"scheme in lower case", apiKey, header("Authorization", "apikey k-t1"), "", "t1", nil},
		{"scheme with extra spaces", apiKey, header("Authorization", "APIKEY   k-t1 "), "", "t1", nil},
		{"scheme and a tab", apiKey, header("Authorization", "ApiKey\tk-t1"), "", "t1", nil},
		{"scheme and a tab beside the header", apiKey, header("Authorization", "ApiKey\tk-t2", "X-Api-Key", "k-t1"), "", "", ErrAmbiguous},
		{"another scheme of ours", apiKey, header("Authorization", "bearer k-t2"), "", "t2", nil},
		{"a scheme of the upstream", apiKey, header("Authorization", "Basic k-t1"), "", "", ErrMissing},
		{"a scheme of the upstream beside the header", apiKey, header("Authorization", "Basic x", "X-Api-Key", "k-t1"), "", "t1", nil},
		{"scheme alone", apiKey, header("Authorization", "ApiKey"), "", "", ErrMissing},
		{"scheme and header", apiKey, header("Authorization", "ApiKey k-t1", "X-Api-Key", "k-t1"), "", "", ErrAmbiguous},
		{"two authorizations", apiKey, header("Authorization", "ApiKey k-t1", "Authorization", "ApiKey k-t2"), "", "", ErrAmbiguous},
		{"ours behind a foreign authorization", apiKey, header("Authorization", "Basic x", "Authorization", "ApiKey k-t2"), "", "", ErrAmbiguous},
		{"schemes are off", nil, header("Authorization", "ApiKey k-t1"), "", "", ErrMissing},
		{"too long", nil, header("X-Api-Key", strings.Repeat("k", 8192)), "", "", ErrMalformed},
		{"a NUL", nil, header("X-Api-Key", "k\x00"), "", "", ErrMalformed},
		{"a space inside", nil, header("X-Api-Key", "k t1"), "", "", ErrMalformed},
		{"odd but whole", nil, header("X-Api-Key", "a}b{c:d"), "", "", ErrUnknown},
		{"by name", byName, header("X-Api-Key", "shop-a"), "", "shop-a", nil},
		{"by an odd name", byName, header("X-Api-Key", "a:b"), "", "a:b", nil},
		{"by a reserved name", byName, header("X-Api-Key", "@ip:192.0.2.1"), "", "", ErrMalformed},
		{"by the wildcard", byName, header("X-Api-Key", "*"), "", "", ErrMalformed},
		{"by a long name", byName, header("X-Api-Key", strings.Repeat("a", 65)), "", "", ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/v1/items", nil)
			r.Header, r.URL.RawQuery = tt.header, tt.query
			got, err := identifier(tt.edit).Tenant(r, time.Time{}, known)
			if got != tt.want || err != tt.err {
				t.Errorf("%q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// What names the tenant here is what upstreams do not see; everything else they do.
func TestStrip(t *testing.T) {
	i := identifier(func(c *config.Identity) { c.Schemes, c.Query = []string{"ApiKey"}, "key" })
	h := http.Header{"X-Api-Key": {"k"}, "Authorization": {"apikey k"}, "Accept": {"*/*"}}
	if q := i.Strip(h, "a=1&k%65y=k&b=2"); q != "a=1&b=2" {
		t.Errorf("query %q", q)
	}
	if len(h) != 1 {
		t.Errorf("headers %v", h)
	}
	foreign := http.Header{"Authorization": {"Basic k"}}
	if q := i.Strip(foreign, "a=%zz"); q != "a=%zz" || len(foreign) != 1 {
		t.Errorf("query %q, headers %v", q, foreign)
	}
}

// A million unknown keys leave nothing behind and allocate nothing.
func TestUnknownKeyCostsNothing(t *testing.T) {
	i := identifier(nil)
	r := httptest.NewRequest("GET", "/v1/items", nil)
	r.Header = http.Header{"X-Api-Key": {"some-key-that-nobody-has-0123456789abcdef0123456789abcdef"}}
	if n := testing.AllocsPerRun(100, func() { _, _ = i.Tenant(r, time.Time{}, known) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCredential: at most one credential is found, it holds nothing that could split a header or a log line, and what was
// found is gone after Strip.
func FuzzCredential(f *testing.F) {
	f.Add("k-t1", "", "")
	f.Add("", "ApiKey k-t1", "")
	f.Add("a, b", "apikey  x", "key=%6b&k%65y=1")
	f.Fuzz(func(t *testing.T, key, authorization, query string) {
		p := parser{header: "X-Api-Key", schemes: []string{"ApiKey"}, query: "key"}
		h := http.Header{}
		if key != "" {
			h["X-Api-Key"] = []string{key}
		}
		if authorization != "" {
			h["Authorization"] = []string{authorization}
		}
		got, err := p.find(h, query)
		if err != nil {
			return
		}
		if got == "" || len(got) > MaxCredentialBytes || strings.ContainsAny(got, " \t\r\n\x00") {
			t.Fatalf("found %q", got)
		}
		left := (&Identifier{parser: p}).Strip(h, query)
		if again, err := p.find(h, left); err != ErrMissing {
			t.Fatalf("after Strip of %q, %q, %q there is still %q, %v", key, authorization, query, again, err)
		}
	})
}

func BenchmarkTenant(b *testing.B) {
	i := identifier(nil)
	r := httptest.NewRequest("GET", "/v1/items?x=1", nil)
	r.Header = http.Header{"X-Api-Key": {"k-t1"}, "Accept": {"*/*"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := i.Tenant(r, time.Time{}, known); err != nil {
			b.Fatal(err)
		}
	}
}
