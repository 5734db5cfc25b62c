package config

import (
	"errors"
	"fmt"
	"strings"
)

// FieldError is implemented by errors of Validate methods that know which field they speak of. FieldPath is written as
// in routes[2].path or upstreams.orders.url, by the file's own spelling.
type FieldError interface {
	error
	FieldPath() string
}

// Fault is one thing wrong with a file.
type Fault struct {
	// File is the path as the caller gave it; empty while not yet known.
	File string
	// Line counts from 1; 0 if not known.
	Line int
	// Field is the path of the field; empty for faults of the file as a whole.
	Field string
	// Err is the reason.
	Err error
}

// FieldPath tells where the fault is.
func (f *Fault) FieldPath() string { return f.Field }

func (f *Fault) Unwrap() error { return f.Err }

// Error is file:line: field: reason, leaving out what is not known.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Err.Error())
	return b.String()
}

// Faults collects everything wrong with a file, so that one run of -check-config shows it all. The zero value is ready.
type Faults struct{ list []error }

// Add notes that field is wrong. The reason is formatted as by fmt.Errorf.
func (f *Faults) Add(field, format string, args ...any) {
	f.list = append(f.list, &Fault{Field: field, Err: fmt.Errorf(format, args...)})
}

// Merge notes the faults of a part of the file, whose own paths begin below prefix. Errors without a field are noted at
// prefix itself; nil is ignored.
func (f *Faults) Merge(prefix string, err error) {
	for _, e := range flatten(err) {
		field, reason := prefix, e
		var fe FieldError
		if errors.As(e, &fe) {
			field = joinPath(prefix, fe.FieldPath())
			if fault, ok := fe.(*Fault); ok {
				reason = fault.Err
			} else {
				reason = errors.New(strings.TrimPrefix(fe.Error(), fe.FieldPath()+": "))
			}
		}
		f.list = append(f.list, &Fault{Field: field, Err: reason})
	}
}

// Err is all faults joined, or nil.
func (f *Faults) Err() error { return errors.Join(f.list...) }

func joinPath(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "":
		return prefix
	case path[0] == '[':
		return prefix + path
	}
	return prefix + "." + path
}

// flatten lists the errors that errors.Join has put together, at any depth.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, flatten(e)...)
	}
	return list
}
