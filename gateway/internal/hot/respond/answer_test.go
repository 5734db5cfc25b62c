package respond

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/limit"
)

// The names of the headers as http.Header holds them.
const (
	headerLimit     = "X-Ratelimit-Limit"
	headerRemaining = "X-Ratelimit-Remaining"
	headerReset     = "X-Ratelimit-Reset"
	headerPolicy    = "Ratelimit-Policy"
	headerRateLimit = "Ratelimit"
)

func answer(t *testing.T, c config.Config, r *http.Request, a Answer) *httptest.ResponseRecorder {
	t.Helper()
	c.SetDefaults()
	s := New(&c)
	s.spread = func() float64 { return 0 }
	w := httptest.NewRecorder()
	s.Write(w, r, a)
	return w
}

func key(route string) limit.Key { return limit.Key{Tenant: "t1", Route: route} }

func rule(capacity, refill, period int64) *limit.Rule {
	return &limit.Rule{Capacity: capacity, Refill: refill, PeriodSeconds: period}
}

func refused(wait time.Duration) *limit.Decision {
	return &limit.Decision{Key: key("items"), Rule: rule(200, 100, 1), Share: limit.Whole, Outcome: limit.Refused, RetryAfter: wait, ResetAfter: 2 * time.Second}
}

// A 429 says the same to whatever the client accepts: problem details that name the policy and nothing of the inside.
func TestQuotaExceeded(t *testing.T) {
	for _, accept := range []string{"text/html", "application/json"} {
		r := httptest.NewRequest("GET", "/v1/items", nil)
		r.Header.Set("Accept", accept)
		d := refused(4 * time.Millisecond)
		w := answer(t, config.Config{}, r, Answer{Problem: Refusal(d), Decision: d, Wait: d.RetryAfter})
		want := http.Header{
			"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}, "Retry-After": {"1"},
			headerLimit: {"200"}, headerRemaining: {"0"}, headerReset: {"2"},
			headerPolicy: {`"items";q=200;w=2`}, headerRateLimit: {`"items";r=0;t=1`},
		}
		got := w.Header().Clone()
		got.Del("Content-Length")
		if d := cmp.Diff(want, got); d != "" || w.Code != 429 {
			t.Errorf("%d %s", w.Code, d)
		}
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		wantBody := map[string]any{
			"type":  "https://iana.org/assignments/http-problem-types#quota-exceeded",
			"title": "The rate limit is exhausted", "status": 429.0, "violated-policies": []any{"items"},
		}
		if d := cmp.Diff(wantBody, body); d != "" {
			t.Error(d)
		}
	}
}

func TestHiddenHeadersLeaveBodyAndRetryAfter(t *testing.T) {
	d := refused(time.Second)
	d.Rule.HideHeaders = true
	w := answer(t, config.Config{}, httptest.NewRequest("GET", "/", nil), Answer{Problem: Refusal(d), Decision: d, Wait: d.RetryAfter})
	for _, name := range []string{headerLimit, headerRemaining, headerReset, headerPolicy, headerRateLimit} {
		if v, ok := w.Header()[name]; ok {
			t.Errorf("%s: %q", name, v)
		}
	}
	if w.Code != 429 || w.Header().Get("Retry-After") != "1" || w.Body.Len() == 0 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// What is not over a limit is told apart from what is.
func TestOtherOutcomes(t *testing.T) {
	for _, tt := range []struct {
		outcome limit.Outcome
		status  int
		kind    string
		retry   string
	}{
		{limit.TooLarge, 413, ownTypes + "cost-above-capacity", ""},
		{limit.Blocked, 403, ownTypes + "blocked", ""},
		{limit.Unable, 503, draftTypes + "temporary-reduced-capacity", "1"},
		{limit.Refused, 429, draftTypes + "quota-exceeded", "1"},
	} {
		d := refused(0)
		d.Outcome = tt.outcome
		w := answer(t, config.Config{}, httptest.NewRequest("GET", "/", nil), Answer{Problem: Refusal(d), Decision: d})
		var body struct{ Type string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		if w.Code != tt.status || body.Type != tt.kind || w.Header().Get("Retry-After") != tt.retry {
			t.Errorf("%s: %d %s, Retry-After %q", tt.outcome, w.Code, body.Type, w.Header().Get("Retry-After"))
		}
	}
}

func TestGRPCGetsTrailersOnly(t *testing.T) {
	for _, contentType := range []string{"application/grpc", "application/grpc+proto"} {
		for configured, want := range map[int]string{0: "8", 8: "8", 14: "14"} {
			r := httptest.NewRequest("POST", "/pkg.Service/Method", nil)
			r.Header.Set("Content-Type", contentType)
			d := refused(1500 * time.Millisecond)
			route := &config.Route{GRPC: config.GRPC{LimitedStatus: configured}}
			w := answer(t, config.Config{}, r, Answer{Problem: Refusal(d), Decision: d, Route: route, Wait: d.RetryAfter})
			h := w.Header()
			if w.Code != 200 || w.Body.Len() != 0 || h.Get("Grpc-Status") != want || h.Get("Grpc-Message") == "" ||
				h.Get("Content-Type") != contentType || h.Get("Grpc-Retry-Pushback-Ms") != "2000" || h.Get("Retry-After") != "2" {
				t.Errorf("%d %v %q", w.Code, h, w.Body)
			}
		}
	}
}

func TestUnauthorizedSaysHow(t *testing.T) {
	w := answer(t, config.Config{}, httptest.NewRequest("GET", "/", nil), Answer{Problem: CredentialMissing})
	if w.Code != 401 || w.Header().Get("Www-Authenticate") != `ApiKey realm="partidor"` || w.Header().Get("Content-Type") != problemType {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestCustomBody(t *testing.T) {
	route := &config.Route{Bodies: map[int]config.Body{429: {ContentType: "text/plain", Text: "{status} {policy} {retry_after} {other}"}}}
	d := refused(2 * time.Second)
	w := answer(t, config.Config{}, httptest.NewRequest("GET", "/", nil), Answer{Problem: Refusal(d), Decision: d, Route: route, Wait: d.RetryAfter})
	if got := w.Body.String(); got != "429 items 2 {other}" || w.Header().Get("Content-Type") != "text/plain" {
		t.Errorf("%q %v", got, w.Header())
	}
}

// A browser's script may read a 429 and when to come back.
func TestCORS(t *testing.T) {
	c := config.Config{CORS: config.CORS{Origins: []string{"https://app.example.com"}}}
	for origin, allowed := range map[string]bool{"https://app.example.com": true, "https://evil.example": false, "": false} {
		r := httptest.NewRequest("GET", "/", nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		d := refused(time.Second)
		h := answer(t, c, r, Answer{Problem: Refusal(d), Decision: d}).Header()
		want := ""
		if allowed {
			want = origin
		}
		if h.Get("Access-Control-Allow-Origin") != want || (h.Get("Access-Control-Expose-Headers") == exposed) != allowed || h.Get("Vary") != "Origin" {
			t.Errorf("origin %q: %v", origin, h)
		}
	}
}

func TestCORSLeftToUpstreams(t *testing.T) {
	s := New(&config.Config{})
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Origin", "https://app.example.com")
	h := http.Header{}
	s.Decorate(h, r, refused(0))
	if h.Get("Access-Control-Expose-Headers") != "" {
		t.Error("exposed where no origin is allowed")
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "X-Total")
	s.Decorate(h, r, refused(0))
	if d := cmp.Diff([]string{"X-Total", exposed}, h["Access-Control-Expose-Headers"]); d != "" {
		t.Error(d)
	}
	r.Method = http.MethodOptions
	r.Header.Set("Access-Control-Request-Method", "GET")
	if m := s.PreflightMethod(r); m != "" {
		t.Errorf("a preflight that is the upstream's business is taken as %q", m)
	}
}
