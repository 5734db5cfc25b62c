package identify

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

func addresses(edit func(*config.Addresses)) *Addresses {
	var c config.Config
	c.Addresses.TrustedProxies = []string{"10.0.0.0/8", "2001:db8:ffff::/48"}
	if edit != nil {
		edit(&c.Addresses)
	}
	c.SetDefaults()
	return NewAddresses(c.Addresses)
}

func TestClient(t *testing.T) {
	forwarded := func(c *config.Addresses) { c.Header = config.ForwardedHeader }
	const xff, fwd = "X-Forwarded-For", "Forwarded"
	tests := []struct {
		name   string
		edit   func(*config.Addresses)
		peer   string
		header http.Header
		want   string // Empty: unknown.
	}{
		{"direct", nil, "203.0.113.9:1234", nil, "203.0.113.9"},
		{"direct with a forged header", nil, "203.0.113.9:1234", http.Header{xff: {"1.2.3.4"}}, "203.0.113.9"},
		{"direct in IPv6", nil, "[2001:db8::1%eth0]:1234", nil, "2001:db8::1"},
		{"IPv4 in IPv6", nil, "[::ffff:203.0.113.9]:1234", nil, "203.0.113.9"},
		{"no peer", nil, "", nil, ""},
		{"a unix socket", nil, "@", nil, ""},
		{"behind a proxy", nil, "10.0.0.5:80", http.Header{xff: {"198.51.100.7"}}, "198.51.100.7"},
		{"two lines, read as one list from the right", nil, "10.0.0.5:80", http.Header{xff: {"1.1.1.1", "198.51.100.7"}}, "198.51.100.7"},
		{"past trusted hops", nil, "10.0.0.5:80", http.Header{xff: {"1.1.1.1, 198.51.100.7 ,10.0.0.9", "10.1.1.1"}}, "198.51.100.7"},
		{"only trusted hops", nil, "10.0.0.5:80", http.Header{xff: {"10.0.0.8, 10.0.0.9"}}, "10.0.0.8"},
		{"a trusted proxy that says nothing", nil, "10.0.0.5:80", nil, "10.0.0.5"},
		{"empty elements", nil, "10.0.0.5:80", http.Header{xff: {"198.51.100.7,, "}}, "198.51.100.7"},
		{"rubbish left of the client", nil, "10.0.0.5:80", http.Header{xff: {"rubbish, 198.51.100.7"}}, "198.51.100.7"},
		{"rubbish from the proxy itself", nil, "10.0.0.5:80", http.Header{xff: {"198.51.100.7, unknown"}}, ""},
		{"ports", nil, "10.0.0.5:80", http.Header{xff: {"198.51.100.7:4711"}}, "198.51.100.7"},
		{"IPv6 in brackets", nil, "10.0.0.5:80", http.Header{xff: {"[2001:db8::7]"}}, "2001:db8::7"},
		{"IPv6 in brackets with port", nil, "10.0.0.5:80", http.Header{xff: {"[2001:db8::7]:443"}}, "2001:db8::7"},
		{"IPv4 in IPv6 from the proxy", nil, "[::ffff:10.0.0.5]:80", http.Header{xff: {"::ffff:198.51.100.7"}}, "198.51.100.7"},
		{"the other header is not believed", nil, "10.0.0.5:80", http.Header{fwd: {"for=198.51.100.7"}, xff: {"198.51.100.8"}}, "198.51.100.8"},
		{"Forwarded", forwarded, "10.0.0.5:80", http.Header{fwd: {`for=1.1.1.1, For="198.51.100.7:99";proto=https;by=10.0.0.5`}, xff: {"2.2.2.2"}}, "198.51.100.7"},
		{"Forwarded in IPv6", forwarded, "10.0.0.5:80", http.Header{fwd: {`proto=http; for="[2001:db8::7]:4711"`}}, "2001:db8::7"},
		{"Forwarded hides the client", forwarded, "10.0.0.5:80", http.Header{fwd: {"for=_hidden"}}, ""},
		{"Forwarded names two", forwarded, "10.0.0.5:80", http.Header{fwd: {"for=1.1.1.1;for=2.2.2.2"}}, ""},
		{"Forwarded without for", forwarded, "10.0.0.5:80", http.Header{fwd: {"proto=https"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr, r.Header = tt.peer, tt.header
			got, ok := addresses(tt.edit).Client(r)
			if ok != (tt.want != "") || ok && got.String() != tt.want {
				t.Errorf("%v, %v; want %q", got, ok, tt.want)
			}
		})
	}
}

// 500 addresses inside one /64 are one client; the next /64 is another; the width is configurable.
func TestIPv6Rotation(t *testing.T) {
	a := addresses(nil)
	names := map[string]bool{}
	for i := range 500 {
		names[a.Tenant(netip.MustParseAddr(fmt.Sprintf("2001:db8:1:2::%x", i)))] = true
	}
	if len(names) != 1 || !names["@ip:2001:db8:1:2::/64"] {
		t.Errorf("names %v", names)
	}
	if other := a.Tenant(netip.MustParseAddr("2001:db8:1:3::1")); names[other] {
		t.Errorf("the next network is %s too", other)
	}
	wide := addresses(func(c *config.Addresses) { c.IPv6Prefix = 48 })
	if n := wide.Tenant(netip.MustParseAddr("2001:db8:1:3::1")); n != "@ip:2001:db8:1::/48" {
		t.Errorf("width 48: %s", n)
	}
	if n := a.Tenant(netip.MustParseAddr("203.0.113.9")); n != "@ip:203.0.113.9" {
		t.Errorf("IPv4: %s", n)
	}
}

func TestLists(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	a := addresses(func(c *config.Addresses) {
		c.Allow = []config.AddressEntry{{Network: "192.0.2.7"}}
		c.Deny = []config.AddressEntry{{Network: "192.0.2.0/24"}, {Network: "198.51.100.7", Until: now}}
	})
	for addr, want := range map[string]Verdict{"192.0.2.7": Allowed, "192.0.2.8": Denied, "198.51.100.7": Unlisted, "203.0.113.1": Unlisted} {
		if got := a.Listed(netip.MustParseAddr(addr), now); got != want {
			t.Errorf("%s: %d, want %d", addr, got, want)
		}
	}
	if a.Listed(netip.MustParseAddr("198.51.100.7"), now.Add(-time.Second)) != Denied {
		t.Error("an entry ended early")
	}
}

// FuzzForwarded: whatever a header holds, the client is an address in canonical form that is no zone's and not mapped, and
// a peer that is not trusted is the client whatever it sends.
func FuzzForwarded(f *testing.F) {
	for _, s := range []string{"1.1.1.1, 198.51.100.7", `for="[2001:db8::7]:80";proto=http`, "for=_x,unknown", "::ffff:1.2.3.4,[::1%eth0]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, name := range []string{config.XForwardedForHeader, config.ForwardedHeader} {
			a := addresses(func(c *config.Addresses) { c.Header = name })
			r := httptest.NewRequest("GET", "/", nil)
			r.Header = http.Header{name: {line}}
			r.RemoteAddr = "203.0.113.9:1"
			if got, ok := a.Client(r); !ok || got.String() != "203.0.113.9" {
				t.Fatalf("%s %q moved an untrusted peer to %v", name, line, got)
			}
			r.RemoteAddr = "10.0.0.5:1"
			if got, ok := a.Client(r); ok && (got.Is4In6() || got.Zone() != "" || !got.IsValid()) {
				t.Fatalf("%s %q is %v", name, line, got)
			}
		}
	})
}

func newGuard(requests int) (*Guard, time.Time) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return NewGuard(config.Guard{Requests: requests, Window: time.Minute}, start), start
}

func TestGuard(t *testing.T) {
	g, start := newGuard(100)
	a, b := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	now := start.Add(10 * time.Second)
	for i := range 100 {
		if _, ok := g.Count(a, now); !ok {
			t.Fatalf("request %d refused", i+1)
		}
	}
	if wait, ok := g.Count(a, now); ok || wait != 50*time.Second {
		t.Errorf("request 101: %v, wait %s", ok, wait)
	}
	if wait, ok := g.Check(a, now); ok || wait != 50*time.Second {
		t.Errorf("check: %v, wait %s", ok, wait)
	}
	if _, ok := g.Count(b, now); !ok {
		t.Error("another client is refused too")
	}
	if _, ok := g.Count(a, start.Add(time.Minute)); !ok {
		t.Error("refused in the next window")
	}
}

// A flood of a million other addresses neither grows the guard nor frees the client that is over the limit.
func TestGuardUnderFlood(t *testing.T) {
	g, now := newGuard(10)
	abuser := netip.MustParsePrefix("192.0.2.1/32")
	for range 10 {
		g.Count(abuser, now)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	random := rand.New(rand.NewPCG(1, 2))
	for range 1_000_000 {
		addr := netip.AddrFrom4([4]byte{byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
		g.Count(netip.PrefixFrom(addr, 32), now)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("a million addresses left %d bytes", grown)
	}
	if _, ok := g.Check(abuser, now); ok {
		t.Error("the flood freed the abuser")
	}
}

func BenchmarkGuard(b *testing.B) {
	g, now := newGuard(1 << 30)
	client := netip.MustParsePrefix("192.0.2.1/32")
	b.ReportAllocs()
	for b.Loop() {
		g.Count(client, now)
	}
}
