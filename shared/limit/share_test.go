package limit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestApportion(t *testing.T) {
	for _, tt := range []struct {
		weights []float64
		want    []Share
	}{
		{[]float64{70, 30}, []Share{700_000, 300_000}},
		{[]float64{1, 1, 1}, []Share{333_334, 333_333, 333_333}},
		{[]float64{0, 0}, []Share{500_000, 500_000}},
		{[]float64{0, 5}, []Share{0, Whole}},
		{[]float64{1e300, 1e300}, []Share{500_000, 500_000}},
		{nil, []Share{}},
	} {
		if diff := cmp.Diff(tt.want, Apportion(tt.weights)); diff != "" {
			t.Errorf("Apportion(%v): %s", tt.weights, diff)
		}
	}
}

func TestApportionAlwaysAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := Share(rapid.Int64Range(0, int64(Whole)).Draw(t, "total"))
		weights := rapid.SliceOfN(rapid.Float64Range(0, 1e12), 1, 12).Draw(t, "weights")
		var sum Share
		for _, p := range ApportionOf(total, weights) {
			if p < 0 {
				t.Fatalf("negative part %d", p)
			}
			sum += p
		}
		if sum != total {
			t.Fatalf("parts add up to %d, want %d", sum, total)
		}
	})
}

func TestSplitValidate(t *testing.T) {
	if err := (Split{"eu": 700_000, "us": 300_000}).Validate(); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		split Split
		want  string
	}{
		"empty":    {Split{}, "no regions"},
		"sum":      {Split{"eu": 700_000, "us": 299_999}, "add up to 999999"},
		"negative": {Split{"eu": Whole + 1, "us": -1}, "region eu"},
		"name":     {Split{"*": Whole}, "wildcard"},
	} {
		if err := tt.split.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestSliceOf(t *testing.T) {
	r := Rule{Capacity: 200, Refill: 100, PeriodSeconds: 1}
	if got, want := r.SliceOf(700_000), (Slice{Capacity: 140, Rate: 70}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := r.SliceOf(0); got != (Slice{}) {
		t.Errorf("no share: got %v", got)
	}
}
