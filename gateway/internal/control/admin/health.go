package admin

import (
	"encoding/json"
	"net/http"
)

// Level is how bad a finding is.
type Level uint8

const (
	// Fine: nothing to say.
	Fine Level = iota
	// Degraded: requests are served, but not as well as they should be.
	Degraded
	// NotReady: requests should go elsewhere.
	NotReady
)

// Finding is one answer of a check.
type Finding struct {
	Level Level
	// Reason is short and stable, such as "stale rules"; Detail is for people and may change.
	Reason string
	Detail string
}

// Check judges one part of the gateway. It is called for every readiness probe and must not wait.
type Check func() Finding

// readiness is the body of /readyz.
type readiness struct {
	Status  string   `json:"status"` // ready, degraded or not ready
	Reasons []reason `json:"reasons"`
}

type reason struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Fatal  bool   `json:"fatal"` // it alone makes the gateway not ready
}

func judge(checks []Check) (readiness, int) {
	worst, r := Fine, readiness{Reasons: []reason{}}
	for _, check := range checks {
		f := check()
		if f.Level == Fine {
			continue
		}
		worst = max(worst, f.Level)
		r.Reasons = append(r.Reasons, reason{f.Reason, f.Detail, f.Level == NotReady})
	}
	switch worst {
	case NotReady:
		r.Status = "not ready"
		return r, http.StatusServiceUnavailable
	case Degraded:
		r.Status = "degraded"
	default:
		r.Status = "ready"
	}
	return r, http.StatusOK
}

func readyz(checks []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body, status := judge(checks)
		writeJSON(w, status, body)
	}
}

// healthz answers as long as the process can: a gateway that is not ready is not to be killed for it.
func healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(body) // the client may have gone
}
