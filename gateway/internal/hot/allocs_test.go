package hot

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// What the gateway allocates for a request beyond httputil.ReverseProxy with a pool of buffers, over the same connections to the
// same upstream: the headers and strings of its own, the exchange and its two views, what the breaker and the bodies need.
// Under the race detector pools drop what they are given at random, so there the runs show only that nothing races.
func TestAllocationsOfForwarding(t *testing.T) {
	const allowed = 12
	f := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, nil)
	f.admitter.rule.Capacity = 1 << 40
	target, err := url.Parse(f.echo.URL)
	if err != nil {
		t.Fatal(err)
	}
	plain := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		BufferPool: plainBuffers{},
	}
	per := func(h http.Handler) float64 {
		w, r := &nullWriter{h: http.Header{}}, benchRequest()
		return testing.AllocsPerRun(500, func() {
			clear(w.h)
			h.ServeHTTP(w, r)
		})
	}
	ours, theirs := per(f.Handler), per(plain)
	t.Logf("%v allocations with the gateway, %v with a plain proxy", ours, theirs)
	if ours > theirs+allowed && !raceDetector {
		t.Errorf("%v allocations, %v for the plain proxy: more than %d beyond it", ours, theirs, allowed)
	}
}

// A refusal allocates next to nothing: turning requests away must be cheap.
func TestAllocationsOfRefusing(t *testing.T) {
	const allowed = 10
	f := newFixture(t, nil, nil)
	f.drain(limit.Key{Tenant: "t1", Route: "item"})
	w, r := &nullWriter{h: http.Header{}}, benchRequest()
	n := testing.AllocsPerRun(500, func() {
		clear(w.h)
		f.ServeHTTP(w, r)
	})
	if n > allowed && !raceDetector {
		t.Errorf("%v allocations, want at most %d", n, allowed)
	}
	if f.echo.hits.Load() != 0 || !strings.HasPrefix(w.h.Get("Content-Type"), "application/problem+json") {
		t.Errorf("not refused: %v", w.h)
	}
}

type plainBuffers struct{}

var plainBuffer = make([]byte, 32<<10)

func (plainBuffers) Get() []byte { return plainBuffer }
func (plainBuffers) Put([]byte)  {}
