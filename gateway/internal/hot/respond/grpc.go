package respond

import (
	"net/http"
	"strconv"
	"strings"
)

// IsGRPC tells by the content type whether the caller speaks gRPC, also the kind for browsers.
func IsGRPC(r *http.Request) bool {
	values := r.Header["Content-Type"]
	return len(values) == 1 && strings.HasPrefix(values[0], "application/grpc")
}

// writeTrailersOnly answers a gRPC call that got no further: HTTP 200, the status in the only block of headers, no body.
func writeTrailersOnly(w http.ResponseWriter, r *http.Request, a Answer, retry int64) {
	code := a.Problem.Code
	if code == codeResourceExhausted && a.Route != nil && a.Route.GRPC.LimitedStatus != 0 {
		code = a.Route.GRPC.LimitedStatus
	}
	h := w.Header()
	h["Content-Type"] = r.Header["Content-Type"]
	h["Grpc-Status"] = []string{strconv.Itoa(code)}
	h["Grpc-Message"] = []string{a.Problem.Title}
	if retry > 0 {
		// The client library's own retries wait as long.
		h["Grpc-Retry-Pushback-Ms"] = []string{strconv.FormatInt(retry*1000, 10)}
	}
	w.WriteHeader(http.StatusOK)
}
