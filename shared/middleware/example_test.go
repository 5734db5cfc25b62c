package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/middleware"
)

// A service with two requests per hour for each user. With bucket.NewRedis in the place of bucket.NewMemory all of its
// processes share the buckets.
func Example() {
	perHour := &limit.Rule{Capacity: 2, Refill: 2, PeriodSeconds: 3600}
	limits, err := middleware.New(middleware.Options{
		Store: bucket.NewMemory(nil),
		Key: func(r *http.Request) (limit.Key, bool) {
			user, _, ok := r.BasicAuth()
			return limit.Key{Tenant: user, Route: "reports"}, ok
		},
		Rule: func(limit.Key) *limit.Rule { return perHour },
	})
	if err != nil {
		panic(err)
	}
	reports := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "report") })
	handler := limits.Handler(reports)

	for range 3 {
		r := httptest.NewRequest("GET", "/reports", nil)
		r.SetBasicAuth("ada", "secret")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After") != "")
	}
	// Output:
	// 200 "reports";r=1;t=1800 false
	// 200 "reports";r=0;t=1800 false
	// 429 "reports";r=0;t=1800 true
}
