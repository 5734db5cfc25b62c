package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"partidor.dev/partidor/rebalancer/internal/ledger"
)

// Problem is an answer that is not the wanted one (RFC 9457). Errors names the fields at fault.
type Problem struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"`
	Errors []FieldFault `json:"errors,omitempty"`
}

// FieldFault is one field and what is wrong with it. Line counts from 1 where the field came from a file.
type FieldFault struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
	Line   int    `json:"line,omitempty"`
}

func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Title + ": " + p.Detail
	}
	return p.Title
}

const problemTypes = "https://partidor.dev/problems/"

func problem(status int, kind, title, detail string) *Problem {
	return &Problem{Type: problemTypes + kind, Title: title, Status: status, Detail: detail}
}

func badRequest(field, detail string) *Problem {
	p := problem(http.StatusBadRequest, "invalid-request", "Invalid request", field+": "+detail)
	p.Errors = []FieldFault{{Field: field, Detail: detail}}
	return p
}

func notFound(what string) *Problem {
	return problem(http.StatusNotFound, "not-found", "Not found", what)
}

// asProblem gives an error its HTTP form. What is not the caller's fault is logged and told in general words only.
func asProblem(err error) (p *Problem, internal bool) {
	var field *ledger.FieldError
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.As(err, &field):
		return badRequest(field.Field, field.Reason), false
	case errors.Is(err, ledger.ErrNotFound):
		return notFound(err.Error()), false
	case errors.Is(err, ledger.ErrConflict):
		return problem(http.StatusConflict, "conflict", "Changed in the meantime", err.Error()), false
	case errors.Is(err, ledger.ErrReadOnly):
		return problem(http.StatusConflict, "read-only", "Rules come from a file", err.Error()), false
	}
	return problem(http.StatusServiceUnavailable, "ledger-unavailable", "The ledger did not answer", ""), true
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

// handler is an endpoint: it answers a body, or nil for 204, or an error.
type handler func(r *http.Request) (any, error)

// serve turns a handler into HTTP.
func (s *Server) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := h(r)
		if err != nil {
			p, internal := asProblem(err)
			if internal && r.Context().Err() == nil {
				s.Logger.ErrorContext(r.Context(), "admin request failed", "method", r.Method, "path", r.URL.Path, "error", err)
			}
			writeProblem(w, p)
			return
		}
		if r.Method != http.MethodGet {
			s.Logger.InfoContext(r.Context(), "admin request", "caller", CallerOf(r.Context()).Name, "method", r.Method, "path", r.URL.Path,
				"dry_run", r.URL.Query().Get("dry_run") == "true")
		}
		if body == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			s.Logger.Log(r.Context(), slog.LevelDebug, "admin answer not sent", "error", err)
		}
	})
}
