package config

import (
	"errors"
	"fmt"
)

// FieldError is one fault of the file. Field is its path, such as routes[2].path.
type FieldError struct {
	Field   string
	Message string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// FieldPath tells where the fault is, for whoever can add the line.
func (e *FieldError) FieldPath() string { return e.Field }

// faults collects every fault, so that one run of -check-config shows them all.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, &FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (f faults) err() error { return errors.Join(f...) }

// atLeast refuses numbers below low.
func atLeast[T int | int64 | float64](f *faults, field string, v, low T) {
	if v < low {
		f.add(field, "%v, must be at least %v", v, low)
	}
}

// between refuses numbers outside low..high.
func between[T int | int64 | float64](f *faults, field string, v, low, high T) {
	if !(v >= low && v <= high) {
		f.add(field, "%v, must be from %v to %v", v, low, high)
	}
}

// oneOf refuses words that are not on the list.
func oneOf(f *faults, field, v string, words ...string) {
	for _, w := range words {
		if v == w {
			return
		}
	}
	f.add(field, "%q, must be one of %q", v, words)
}
