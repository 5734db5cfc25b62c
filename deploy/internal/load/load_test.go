package load_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"partidor.dev/partidor/deploy/internal/load"
)

func TestRunKeepsItsRateWhateverTheServerDoes(t *testing.T) {
	release := make(chan struct{})
	var waiting, most atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := waiting.Add(1)
		defer waiting.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		<-release
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var answered, shed atomic.Int64
	time.AfterFunc(time.Second, func() { close(release) })
	load.Run(ctx, load.Client(5*time.Second), time.Now(), load.Source{
		Request: func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		},
		Rate:     func(time.Duration) float64 { return 200 },
		InFlight: 50,
	}, func(r load.Result) {
		switch {
		case r.Shed:
			shed.Add(1)
		case r.Status == http.StatusOK && r.Received >= r.Sent:
			answered.Add(1)
		default:
			t.Errorf("answer %d, %v", r.Status, r.Err)
		}
	})
	// Those that are sent when the server wakes up, in the last moment of the run, come on top of the 50.
	if answered.Load() < 50 || most.Load() != 50 {
		t.Errorf("%d requests were answered, %d at once in flight, want 50 at once", answered.Load(), most.Load())
	}
	if all := answered.Load() + shed.Load(); all < 140 || all > 260 {
		t.Errorf("%d arrivals in one second at 200/s", all)
	}
}
