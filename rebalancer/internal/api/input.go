package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// read decodes a JSON object strictly: an unknown field, a missing one, a wrong type and anything behind the object are errors that
// name the field.
func read(r *http.Request, into any) error {
	if t := r.Header.Get("Content-Type"); t != "" && !strings.HasPrefix(t, "application/json") {
		return problem(http.StatusUnsupportedMediaType, "media-type", "Send JSON", "Content-Type is "+t)
	}
	d := json.NewDecoder(r.Body)
	var body json.RawMessage
	if err := d.Decode(&body); err != nil {
		return bodyProblem(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("body", "more than one JSON value")
	}
	if !bytes.HasPrefix(body, []byte("{")) {
		return badRequest("body", "must be a JSON object")
	}
	if err := checkNames(r, body, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	d = json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bodyProblem(err)
	}
	return nil
}

// checkNames holds the fields of a body against its type: each is spelt as it is written there, and those that the document calls
// required are there, unless the path has said them.
func checkNames(r *http.Request, body json.RawMessage, t reflect.Type) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil {
		return bodyProblem(err)
	}
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, required, ok := fieldName(f)
		if !ok {
			continue
		}
		known[name] = true
		value, there := given[name]
		null := string(value) == "null" && f.Type != raw // what any value may stand in, null may
		if required && (!there || null) && r.PathValue(name) == "" {
			return badRequest(name, "missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			return badRequest(name, "unknown field")
		}
	}
	return nil
}

// fieldName is what encoding/json calls a field, whether it is always written, and whether it is at all.
func fieldName(f reflect.StructField) (name string, required, ok bool) {
	tag := strings.Split(f.Tag.Get("json"), ",")
	return tag[0], len(tag) == 1, !f.Anonymous && f.IsExported() && tag[0] != "-" && tag[0] != ""
}

// bare refuses a body where none is read: what its sender means by it would not happen.
func bare(r *http.Request) error {
	switch _, err := io.ReadFull(r.Body, make([]byte, 1)); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return bodyProblem(err)
	}
	return badRequest("body", "this takes none")
}

const wantedTime = "a time expected, such as 2027-01-31T18:00:00Z"

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
		return badRequest(wrong.Field, expected(wrong))
	case errors.As(err, &when): // every time in a body is an end
		return badRequest("expires_at", wantedTime)
	case strings.HasPrefix(err.Error(), "Time.UnmarshalJSON: "):
		return badRequest("expires_at", wantedTime)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return badRequest(strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`), "unknown field")
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

// expected says what a field takes, in the words of package config, so that a rule is refused alike wherever it is written.
func expected(wrong *json.UnmarshalTypeError) string {
	number, isNumber := strings.CutPrefix(wrong.Value, "number ")
	switch kind := wrong.Type.Kind(); {
	case isNumber && wrong.Type.ConvertibleTo(reflect.TypeFor[int64]()) && !strings.ContainsAny(number, ".eE"):
		return "the number is too large"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "a whole number expected"
	case kind == reflect.Bool:
		return "true or false expected"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "a number expected"
	case kind == reflect.Slice:
		return "a list expected"
	case kind == reflect.Map || kind == reflect.Struct:
		return "a mapping expected"
	}
	return "a text expected"
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

// notOver refuses an end that has passed: it would end the thing before it began.
func notOver(end *time.Time) error {
	if end != nil && !end.After(time.Now()) {
		return badRequest("expires_at", "has passed")
	}
	return nil
}
