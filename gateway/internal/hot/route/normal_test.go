package route

import (
	"net/url"
	"strings"
	"testing"
)

func TestNormalize(t *testing.T) {
	tests := []struct {
		path, want string
		odd        Oddities
	}{
		{"/", "/", 0},
		{"/v1/items", "/v1/items", 0},
		{"//v1//items", "/v1/items", 0},
		{"/v1/./items", "/v1/items", 0},
		{"/v1/x/../items", "/v1/items", 0},
		{"/../../v1/items", "/v1/items", 0},
		{"/v1/items/", "/v1/items/", 0},
		{"/v1/items//", "/v1/items/", 0},
		{"/v1/items/.", "/v1/items/", 0},
		{"/v1/items/..", "/v1/", 0},
		{"/..", "/", 0},
		{"/.hidden/..x/...", "/.hidden/..x/...", 0},
		{"/v1/%69tems", "/v1/items", 0},
		{"/v1/%7euser/%7Euser", "/v1/~user/~user", 0},
		{"/v1/%40me/@me", "/v1/@me/@me", 0},
		{"/a%20b/%c3%bc", "/a%20b/%C3%BC", 0},
		{"/a%2fb", "/a%2Fb", EncodedSlash},
		{"/a%5Cb", "/a%5Cb", EncodedBackslash},
		{"/v1/%2e%2E/items", "/items", EncodedDots},
		{"/v1/.%2e/items", "/items", EncodedDots},
		{"/v1/%2e/items", "/v1/items", EncodedDots},
		{"/a%2eb", "/a.b", 0},
		{"/a%00b", "/a%00b", ControlBytes},
		{"/a%0d%0ab", "/a%0D%0Ab", ControlBytes},
		{"/items;a=1", "/items;a=1", PathParameters},
		{"/items%3ba=1", "/items;a=1", PathParameters},
		{"/..;/admin", "/..;/admin", PathParameters},
		{"/%c0%af", "/%C0%AF", NotUTF8},
		{"/%252e%252e/", "/%252e%252e/", 0}, // Decoded once only: %25 is a percent sign.
	}
	for _, tt := range tests {
		got, odd, err := Normalize(tt.path)
		if err != nil || got != tt.want || odd != tt.odd {
			t.Errorf("Normalize(%q) = %q, %06b, %v; want %q, %06b", tt.path, got, odd, err, tt.want, tt.odd)
		}
	}
	for _, path := range []string{"", "*", "v1", "/%", "/%4", "/%zz"} {
		if got, _, err := Normalize(path); err == nil {
			t.Errorf("Normalize(%q) = %q, want an error", path, got)
		}
	}
}

func TestNormalPathCostsNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { _, _, _ = Normalize("/v1/items/12345/lines") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzNormalize: the normal form is stable, holds no dot or empty segments, says the same as the path where nothing is
// odd, and net/url sends it out as it is spelt.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"/", "/v1//x/../%69tems;a=1", "/%2e%2e/%2F/%00", "/a/./..//%c3%bc/", "/%252e/%5c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		normal, odd, err := Normalize(path)
		if err != nil {
			return
		}
		again, oddAgain, err := Normalize(normal)
		if err != nil || again != normal {
			t.Fatalf("Normalize(%q) = %q, again %q, %v", path, normal, again, err)
		}
		if oddAgain&^odd != 0 {
			t.Fatalf("Normalize(%q) = %q hides oddities %06b", path, normal, oddAgain)
		}
		segments := strings.Split(normal[1:], "/")
		for i, s := range segments {
			if s == "." || s == ".." || s == "" && i < len(segments)-1 {
				t.Fatalf("Normalize(%q) = %q holds segment %q", path, normal, s)
			}
		}
		u := &url.URL{Path: Decode(normal), RawPath: normal}
		if u.EscapedPath() != normal {
			t.Fatalf("%q goes out as %q", normal, u.EscapedPath())
		}
		if decoded, err := url.PathUnescape(normal); err != nil || decoded != Decode(normal) {
			t.Fatalf("Decode(%q) = %q, net/url says %q, %v", normal, Decode(normal), decoded, err)
		}
	})
}

func FuzzNormalizeHost(f *testing.F) {
	for _, s := range []string{"API.example.com:443", "api.example.com.", "[::1]:80", "::1", "[", "a:b:c", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		n := NormalizeHost(host)
		if strings.ContainsAny(n, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			t.Fatalf("%q has capitals", n)
		}
	})
}
