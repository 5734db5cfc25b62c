package hot

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/shared/limit"
)

// request-path 1: an address that is not trusted has one bucket, whatever it forwards, and the upstream sees only it.
func TestSpoofedForwardedForHasOneBucket(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.admitter.rule.Capacity = 140
	for i := range 300 {
		resp := f.do(t, "GET", "/v1/open", http.Header{"X-Forwarded-For": {fmt.Sprintf("1.2.3.%d", i%256)}})
		if want := map[bool]int{true: 200, false: 429}[i < 140]; resp.StatusCode != want {
			t.Fatalf("request %d: %d, want %d", i+1, resp.StatusCode, want)
		}
		if got := f.echo.last.Load().Header["X-Forwarded-For"]; len(got) != 1 || got[0] != "127.0.0.1" {
			t.Fatalf("upstream sees %q", got)
		}
	}
	if f.admitter.spentBy("@ip:127.0.0.1", "open") != 140 || f.admitter.buckets() != 1 {
		t.Errorf("buckets %v", f.admitter.spent)
	}
}

// request-path 2 and 11: behind a trusted proxy the client's network has the bucket.
func TestClientBehindTrustedProxy(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Addresses.TrustedProxies = []string{"127.0.0.0/8", "10.0.0.0/8"} })
	f.do(t, "GET", "/v1/open", http.Header{"X-Forwarded-For": {"1.1.1.1", "198.51.100.7, 10.0.0.9"}})
	if f.admitter.spentBy("@ip:198.51.100.7", "open") != 1 {
		t.Errorf("buckets %v", f.admitter.spent)
	}
	for i := range 20 {
		f.do(t, "GET", "/v1/open", http.Header{"X-Forwarded-For": {fmt.Sprintf("2001:db8:1:2::%x", i)}})
	}
	if f.admitter.spentBy("@ip:2001:db8:1:2::/64", "open") != 20 {
		t.Errorf("buckets %v", f.admitter.spent)
	}
	// An address that the proxy does not tell is nobody's bucket.
	resp := f.do(t, "GET", "/v1/open", http.Header{"X-Forwarded-For": {"unknown"}})
	if resp.StatusCode != 400 || !strings.Contains(bodyOf(t, resp), "unknown-address") || f.admitter.buckets() != 2 {
		t.Errorf("%d, buckets %v", resp.StatusCode, f.admitter.spent)
	}
}

// request-path 4: without a key 401 and no bucket; with anonymous access a bucket in its own namespace.
func TestMissingKey(t *testing.T) {
	f := newFixture(t, nil, nil)
	resp := f.do(t, "GET", "/v1/items", http.Header{})
	if resp.StatusCode != 401 || resp.Header.Get("Content-Type") != "application/problem+json" || f.admitter.calls.Load() != 0 || f.echo.hits.Load() != 0 {
		t.Errorf("%d %v, %d decisions, %d hits", resp.StatusCode, resp.Header, f.admitter.calls.Load(), f.echo.hits.Load())
	}
	if resp := f.do(t, "GET", "/v1/open", http.Header{"X-Api-Key": {"nobody's"}}); resp.StatusCode != 401 {
		t.Errorf("an unknown key passes as anonymous: %d", resp.StatusCode)
	}
}

// request-path 5: all spellings of one credential are one tenant with one bucket.
func TestOneParserForCredentials(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Identity.Schemes = []string{"ApiKey"} })
	for _, v := range []string{"ApiKey k-t1", "apikey k-t1", "APIKEY   k-t1 "} {
		resp := f.do(t, "GET", "/v1/items", http.Header{"Authorization": {v}})
		if resp.StatusCode != 200 || f.echo.last.Load().Header.Get("X-Tenant-Id") != "t1" || f.echo.last.Load().Header.Get("Authorization") != "" {
			t.Errorf("%q: %d, upstream got %v", v, resp.StatusCode, f.echo.last.Load().Header)
		}
	}
	if f.admitter.spentBy("t1", "items") != 3 || f.admitter.buckets() != 1 {
		t.Errorf("buckets %v", f.admitter.spent)
	}
}

// request-path 7: two credentials are 400 and cost neither tenant anything.
func TestTwoKeys(t *testing.T) {
	f := newFixture(t, nil, nil)
	for _, tt := range []struct {
		path   string
		header http.Header
	}{
		{"/v1/items", http.Header{"X-Api-Key": {"k-t1", "k-t2"}}},
		{"/v1/items", http.Header{"X-Api-Key": {"k-t1", "k-t1"}}},
		{"/v1/items", http.Header{"X-Api-Key": {"k-t1, k-t2"}}},
		{"/v1/items?api_key=k-t2", http.Header{"X-Api-Key": {"k-t1"}}},
	} {
		resp := f.do(t, "GET", tt.path, tt.header)
		if resp.StatusCode != 400 || !strings.Contains(bodyOf(t, resp), "#ambiguous-credentials") {
			t.Errorf("%s %v: %d", tt.path, tt.header, resp.StatusCode)
		}
	}
	if f.admitter.calls.Load() != 0 || f.echo.hits.Load() != 0 {
		t.Error("an ambiguous request was decided or forwarded")
	}
}

// request-path 8: the upstream sees only our tenant header: not a client's, not an underscore twin, and none is stripped by
// the client's Connection header.
func TestTenantHeaderCannotBeForged(t *testing.T) {
	f := newFixture(t, nil, nil)
	f.do(t, "GET", "/v1/items", http.Header{
		"X-Api-Key": {"k-t1"}, "X_Tenant_Id": {"t2"}, "x_tenant-id": {"t2"}, "X-Tenant-Id": {"t2", "t3"}, "Connection": {"X-Tenant-Id, X-Api-Key"},
	})
	for name, values := range f.echo.last.Load().Header {
		if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), "X-Tenant-Id") && (name != "X-Tenant-Id" || len(values) != 1 || values[0] != "t1") {
			t.Errorf("%s: %q", name, values)
		}
	}
}

// request-path 10, limits 80: odd keys are refused or stay apart; none reaches a bucket that is not its own.
func TestOddKeys(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Identity.Mode = config.IdentityHeader })
	var keys []limit.Key
	f.admitter.answer = func(r admit.Request) limit.Decision {
		keys = append(keys, limit.Key{Tenant: r.Tenant, Route: r.Route})
		return limit.Decision{Key: keys[len(keys)-1], Rule: &f.admitter.rule, Share: limit.Whole, Remaining: 1}
	}
	for tenant, want := range map[string]int{"a}b{c": 200, "a:b": 200, "a": 200, strings.Repeat("k", 8192): 400, "@ip:127.0.0.1": 400, "*": 400} {
		if resp := f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {tenant}}); resp.StatusCode != want {
			t.Errorf("%.20q: %d, want %d", tenant, resp.StatusCode, want)
		}
	}
	names := map[string]bool{}
	for _, k := range keys {
		names[k.Redis()] = true
	}
	if len(names) != 3 || !names["rl:{a%3Ab}:items"] || !names["rl:{a%7Db%7Bc}:items"] {
		t.Errorf("redis keys %v", names)
	}
	for raw, want := range map[string]string{"X-Api-Key: k\x00t1": "400", "X-Api-Key: " + strings.Repeat("k", 80<<10): "431"} {
		if got := f.raw(t, "GET /v1/items HTTP/1.1\r\nHost: h\r\n"+raw+"\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%.20q: %.40q", raw, got)
		}
	}
}

// request-path 13, limits 79: unknown keys cost 401 each, no decision; the guard catches the sender.
func TestUnknownKeysMeetTheGuard(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Addresses.Guard = config.Guard{Requests: 100, Window: time.Hour} })
	for i := range 150 {
		resp := f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {fmt.Sprintf("random-%d", i)}})
		if want := map[bool]int{true: 401, false: 429}[i < 100]; resp.StatusCode != want {
			t.Fatalf("request %d: %d, want %d", i+1, resp.StatusCode, want)
		}
		if i >= 100 && resp.Header.Get("Retry-After") == "" {
			t.Fatal("the guard's 429 has no Retry-After")
		}
	}
	if f.admitter.calls.Load() != 0 {
		t.Errorf("%d decisions", f.admitter.calls.Load())
	}
}

// request-path 13: a million unknown keys, from as many addresses, leave no memory behind.
func TestUnknownKeysLeaveNoMemory(t *testing.T) {
	count := 1_000_000
	if raceDetector {
		count = 50_000 // It shows the same ten times slower.
	}
	f := newFixture(t, nil, func(c *config.Config) { c.Addresses.Guard = config.Guard{Requests: 100, Window: time.Hour} })
	w, r := &nullWriter{h: http.Header{}}, benchRequest()
	send := func(from, to int) {
		for i := from; i < to; i++ {
			clear(w.h)
			r.Header["X-Api-Key"] = []string{fmt.Sprintf("unknown-key-%08d", i)}
			r.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:1234", i>>16, i&0xffff)
			f.ServeHTTP(w, r)
		}
	}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	send(0, count/10)
	before := live()
	send(count/10, count)
	if after := live(); after > before+512<<10 {
		t.Errorf("%d unknown keys left %d bytes behind", count, after-before)
	}
	if f.admitter.calls.Load() != 0 || w.h.Get("Www-Authenticate") == "" {
		t.Errorf("%d decisions, last answer %v", f.admitter.calls.Load(), w.h)
	}
}

// limits 79: with identity: header the guard still bounds the sender, whoever it claims to be.
func TestGuardBoundsNamedTenants(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		c.Identity.Mode = config.IdentityHeader
		c.Addresses.Guard = config.Guard{Requests: 5, Window: time.Hour}
	})
	passed := 0
	for i := range 10 {
		if f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {fmt.Sprintf("tenant-%d", i)}}).StatusCode == 200 {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d passed, want 5", passed)
	}
}

// A guard that counts failures leaves callers with good keys alone.
func TestGuardOfFailures(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) {
		c.Addresses.Guard = config.Guard{Requests: 5, Window: time.Hour, FailuresOnly: true}
	})
	for range 20 {
		if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 200 {
			t.Fatalf("a good key is refused: %d", s)
		}
	}
	for range 5 {
		f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {"bad"}})
	}
	if s := f.do(t, "GET", "/v1/items", nil).StatusCode; s != 429 {
		t.Errorf("after five failures: %d", s)
	}
}

func TestDeniedAddress(t *testing.T) {
	f := newFixture(t, nil, func(c *config.Config) { c.Addresses.Deny = []config.AddressEntry{{Network: "127.0.0.0/8"}} })
	if resp := f.do(t, "GET", "/v1/items", nil); resp.StatusCode != 403 || f.admitter.calls.Load() != 0 {
		t.Errorf("%d, %d decisions", resp.StatusCode, f.admitter.calls.Load())
	}
}

// request-path 29: a thousand calls with wrong keys leave a tenant's tokens alone.
func TestWrongKeysSpendNobodysTokens(t *testing.T) {
	f := newFixture(t, nil, nil)
	for range 1000 {
		f.do(t, "GET", "/v1/items", http.Header{"X-Api-Key": {"k-t1-but-wrong"}})
	}
	if resp := f.do(t, "GET", "/v1/items", nil); resp.Header.Get("X-RateLimit-Remaining") != "199" {
		t.Errorf("remaining %s", resp.Header.Get("X-RateLimit-Remaining"))
	}
}
