package limit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Revision orders everything the ledger has ever said. Epoch rises when PostgreSQL's timeline changes, so that a
// fail-over never makes new rules look old; Number is given out by the ledger one writer at a time. The zero value is
// older than any other.
type Revision struct {
	Epoch  int64
	Number int64
}

// Compare orders by epoch, then by number.
func (r Revision) Compare(o Revision) int {
	if c := cmp.Compare(r.Epoch, o.Epoch); c != 0 {
		return c
	}
	return cmp.Compare(r.Number, o.Number)
}

// Newer tells whether r is later than o.
func (r Revision) Newer(o Revision) bool { return r.Compare(o) > 0 }

// Max is the later of both.
func (r Revision) Max(o Revision) Revision {
	if o.Newer(r) {
		return o
	}
	return r
}

// String is epoch.number, the form used in Redis, logs and messages.
func (r Revision) String() string {
	return strconv.FormatInt(r.Epoch, 10) + "." + strconv.FormatInt(r.Number, 10)
}

// ParseRevision reads what String wrote.
func ParseRevision(s string) (Revision, error) {
	e, n, ok := strings.Cut(s, ".")
	if !ok {
		return Revision{}, fmt.Errorf("revision %q is not epoch.number", s)
	}
	epoch, err := strconv.ParseInt(e, 10, 64)
	if err != nil || epoch < 0 {
		return Revision{}, fmt.Errorf("revision %q: bad epoch", s)
	}
	number, err := strconv.ParseInt(n, 10, 64)
	if err != nil || number < 0 {
		return Revision{}, fmt.Errorf("revision %q: bad number", s)
	}
	return Revision{Epoch: epoch, Number: number}, nil
}

// MarshalText and UnmarshalText carry a revision through JSON and YAML in its string form.
func (r Revision) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Revision) UnmarshalText(b []byte) error {
	v, err := ParseRevision(string(b))
	if err != nil {
		return err
	}
	*r = v
	return nil
}
