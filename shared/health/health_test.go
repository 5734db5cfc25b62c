package health

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		status  int
		healthy bool
	}{{http.StatusOK, true}, {http.StatusServiceUnavailable, false}, {http.StatusUnauthorized, false}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }))
		if err := Ask(t.Context(), s.URL+"/healthz"); (err == nil) != c.healthy {
			t.Errorf("%d: %v, healthy should be %v", c.status, err, c.healthy)
		}
		s.Close()
		if err := Ask(t.Context(), s.URL+"/healthz"); err == nil {
			t.Error("nobody answers, and that is called healthy")
		}
	}
}
