package cycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

func at(n int64) limit.Revision { return limit.Revision{Epoch: 1, Number: n} }

func heardAt(name string, n int64) collect.RegionStatus {
	return collect.RegionStatus{Name: name, Known: true, Instances: 2, Rules: at(n)}
}

func TestBaseSplitIsPublishedInTwoSteps(t *testing.T) {
	region := func(name string, base, published limit.Share, n int64) ledger.Region {
		return ledger.Region{Name: name, Base: base, Published: published, State: ledger.RegionActive, Revision: at(n)}
	}
	same := []ledger.Region{region("eu", 700_000, 700_000, 1), region("us", 300_000, 300_000, 1)}
	edited := []ledger.Region{region("ap", 200_000, 0, 5), region("eu", 500_000, 700_000, 5), region("us", 300_000, 300_000, 1)}
	lowered := []ledger.Region{region("ap", 200_000, 0, 5), region("eu", 500_000, 500_000, 6), region("us", 300_000, 300_000, 1)}
	gone := []ledger.Region{region("eu", 1_000_000, 700_000, 6), {Name: "us", State: ledger.RegionDead, Revision: at(6)}}
	all := func(n int64) []collect.RegionStatus {
		return []collect.RegionStatus{heardAt("ap", n), heardAt("eu", n), heardAt("us", n)}
	}
	for _, c := range []struct {
		name    string
		regions []ledger.Region
		heard   []collect.RegionStatus
		want    map[string]limit.Share
	}{
		{"nothing to do", same, all(1), nil},
		{"the smaller first, whoever has been heard", edited, nil, map[string]limit.Share{"eu": 500_000}},
		{"not before all have acknowledged", lowered, all(5), nil},
		{"not while one is silent", lowered, []collect.RegionStatus{heardAt("ap", 6), heardAt("eu", 6)}, nil},
		{"not while one has no instance", lowered, []collect.RegionStatus{heardAt("ap", 6), heardAt("eu", 6), {Name: "us", Known: true}}, nil},
		{"then the new", lowered, all(6), map[string]limit.Share{"ap": 200_000}},
		{"a dead region is not waited for", gone, []collect.RegionStatus{heardAt("eu", 6)}, map[string]limit.Share{"eu": 1_000_000}},
	} {
		if diff := cmp.Diff(c.want, publication(c.regions, c.heard)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
