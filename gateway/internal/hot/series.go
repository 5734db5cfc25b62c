package hot

import (
	"maps"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/gateway/internal/hot/route"
)

// routeMetrics holds the attributes of one route's series ready, so that recording builds none.
type routeMetrics struct {
	route    []attribute.KeyValue
	attempts []metric.AddOption
	ready    *atomic.Pointer[map[seriesKey][]metric.RecordOption]
}

type seriesKey struct {
	method string // One of methodName.
	status int
}

// newRouteMetrics is for r, or, with nil, for requests without a route.
func newRouteMetrics(r *route.Route) routeMetrics {
	m := routeMetrics{ready: new(atomic.Pointer[map[seriesKey][]metric.RecordOption])}
	m.ready.Store(&map[seriesKey][]metric.RecordOption{})
	if r != nil {
		m.route = []attribute.KeyValue{attribute.String("http.route", r.Path), attribute.String("partidor.route", r.ID)}
	}
	m.attempts = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(m.route...))}
	return m
}

// recordOptions are those of one series. Statuses outside 100..599 count as none, so that an upstream cannot create
// series at will.
func (m *routeMetrics) recordOptions(method string, status int) []metric.RecordOption {
	if status < 100 || status > 599 {
		status = 0
	}
	k := seriesKey{methodName(method), status}
	for {
		old := m.ready.Load()
		if options, ok := (*old)[k]; ok {
			return options
		}
		attrs := append([]attribute.KeyValue{attribute.String("http.request.method", k.method)}, m.route...)
		if status != 0 {
			attrs = append(attrs, attribute.Int("http.response.status_code", status))
		}
		next := maps.Clone(*old)
		next[k] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
		m.ready.CompareAndSwap(old, &next)
	}
}

// methodName bounds the methods that name series and spans.
func methodName(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return m
	}
	return "_OTHER"
}
