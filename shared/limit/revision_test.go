package limit

import "testing"

func TestRevisionOrder(t *testing.T) {
	order := []Revision{{}, {0, 1}, {0, 2}, {1, 0}, {1, 5}, {2, 1}}
	for i, a := range order {
		for j, b := range order {
			if got := a.Newer(b); got != (i > j) {
				t.Errorf("%v newer than %v: %v", a, b, got)
			}
		}
		if got := a.Max(order[2]); got != order[max(i, 2)] {
			t.Errorf("max of %v and %v is %v", a, order[2], got)
		}
		back, err := ParseRevision(a.String())
		if err != nil || back != a {
			t.Errorf("%v -> %v, %v", a, back, err)
		}
	}
}

func TestParseRevisionRefuses(t *testing.T) {
	for _, s := range []string{"", "1", "1.", ".1", "a.b", "-1.2", "1.-2", "1.2.3", "99999999999999999999.1"} {
		if r, err := ParseRevision(s); err == nil {
			t.Errorf("ParseRevision(%q) = %v, want an error", s, r)
		}
	}
}
