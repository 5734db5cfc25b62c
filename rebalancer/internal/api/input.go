package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// read decodes a JSON body strictly: an unknown field, a wrong type and anything behind the value are errors that name
// the field.
func read(r *http.Request, into any) error {
	if t := r.Header.Get("Content-Type"); t != "" && !strings.HasPrefix(t, "application/json") {
		return problem(http.StatusUnsupportedMediaType, "media-type", "Send JSON", "Content-Type is "+t)
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bodyProblem(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("body", "more than one JSON value")
	}
	return nil
}

func bodyProblem(err error) error {
	var (
		wrong *json.UnmarshalTypeError
		large *http.MaxBytesError
		when  *time.ParseError
	)
	switch {
	case errors.As(err, &large):
		return problem(http.StatusRequestEntityTooLarge, "too-large", "Body too large", fmt.Sprintf("at most %d bytes", large.Limit))
	case errors.As(err, &wrong):
		return badRequest(wrong.Field, fmt.Sprintf("%s, must be %s", wrong.Value, wrong.Type))
	case errors.As(err, &when): // every time in a body is an end
		return badRequest("expires_at", when.Value+", must be a time such as 2027-01-31T18:00:00Z")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return badRequest(strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`), "no such field")
	case errors.Is(err, io.EOF):
		return badRequest("body", "missing")
	}
	// Words of a fixed vocabulary and times say themselves what is wrong, the field first.
	field, detail, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, detail = "body", err.Error()
	}
	return badRequest(field, detail)
}

// edit is how the caller wants a change to be made: on whose behalf, why, whether only to try, and what must still hold.
func edit(r *http.Request, reason string) (ledger.Edit, error) {
	e := ledger.Edit{Author: ledger.Author{Actor: CallerOf(r.Context()).Name, Reason: reason}}
	if len(reason) > maxReason {
		return e, badRequest("reason", fmt.Sprintf("%d bytes, at most %d", len(reason), maxReason))
	}
	// A misspelt dry_run must not be a real run.
	q, err := queryOf(r, "dry_run", "reason")
	if err != nil {
		return e, err
	}
	switch q.text("dry_run") {
	case "", "false":
	case "true":
		e.Dry = true
	default:
		return e, badRequest("dry_run", "must be true or false")
	}
	e.Condition, err = condition(r)
	return e, err
}

const maxReason = 500

// condition reads If-Match ("epoch.number" of the revision that the caller has seen) and If-None-Match: *.
func condition(r *http.Request) (c ledger.Condition, err error) {
	if r.Header.Get("If-None-Match") == "*" {
		c.Absent = true
	}
	if s := strings.Trim(r.Header.Get("If-Match"), `"`); s != "" {
		revision, err := limit.ParseRevision(s)
		if err != nil {
			return c, badRequest("If-Match", err.Error())
		}
		c.Revision = &revision
	}
	return c, nil
}

// fieldFaults turns joined errors, each beginning with its field, into one problem.
func fieldFaults(err error) error {
	if err == nil {
		return nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	p := problem(http.StatusBadRequest, "invalid-request", "Invalid request", err.Error())
	for _, e := range list {
		field, detail, ok := strings.Cut(e.Error(), ": ")
		if !ok {
			field, detail = "body", e.Error()
		}
		p.Errors = append(p.Errors, FieldFault{Field: field, Detail: detail})
	}
	return p
}
