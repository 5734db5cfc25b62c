package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
)

// A collector that takes connections and never answers slows no request: all are answered while none of their spans has been
// sent, what does not fit the queue is dropped and counted, and the gateway stops as usual.
func TestSlowCollectorHoldsNobodyUp(t *testing.T) {
	over := make(chan struct{})
	hole := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over); hole.Close() })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hole.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "32")
	s := newSet(t)
	s.shop(t, "shop-a")
	g := start(t, s.config)
	const requests = 200
	for i := range requests {
		if resp := g.post("shop-a"); resp.StatusCode >= http.StatusInternalServerError {
			t.Fatalf("request %d: %s", i, resp.Status)
		}
	}
	resp, err := http.Get(g.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	value := func(series string) int {
		m := regexp.MustCompile(`(?m)^` + series + ` (\S+)$`).FindSubmatch(body)
		if m == nil {
			t.Fatalf("no %s", series)
		}
		f, _ := strconv.ParseFloat(string(m[1]), 64)
		return int(f)
	}
	waiting := value(`partidor_telemetry_waiting\{partidor_region="eu",partidor_signal="traces"\}`)
	dropped := value(`partidor_telemetry_exported_total\{partidor_region="eu",partidor_result="dropped",partidor_signal="traces"\}`)
	if waiting > 32 || dropped < requests-32 { // a request has several spans
		t.Errorf("%d spans wait, %d were dropped", waiting, dropped)
	}
}
