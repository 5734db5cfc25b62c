package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
)

// parameters reads the few that concern gateways. One that is not understood has its default, and is reported.
func (r *reading) parameters(floor limit.Share) error {
	r.floor = floor
	var (
		name  string
		value []byte
	)
	return r.each(queryParameters, nil, []any{&name, &value}, func() {
		var err error
		switch name {
		case "shadow":
			err = parameterValue(value, &r.Shadow)
		case "control_domain":
			err = parameterValue(value, &r.Control)
		case "fast_loop":
			on := true
			err = parameterValue(value, &on)
			r.Slow = err == nil && !on
		case "floor":
			var part float64
			if err = parameterValue(value, &part); err == nil && !(part >= 0 && part <= 1) {
				err = fmt.Errorf("%v, must be from 0 to 1", part)
			}
			if err == nil {
				r.floor = limit.Share(part * float64(limit.Whole))
			}
		}
		if err != nil {
			r.bad(Fault{Table: tableParameter, Name: name, Err: err})
		}
	})
}

// parameterValue reads a JSON value; null is none.
func parameterValue(value []byte, into any) error {
	if string(value) == "null" {
		return errors.New("null is no value")
	}
	return json.Unmarshal(value, into)
}

func (r *reading) regions(own string) error {
	var (
		name, domain string
		base         int64
		floor        *int64
		at           limit.Revision
		earlier      []earlierRow
	)
	r.Regions = []snapshot.Region{}
	err := r.each(queryRegions, nil, []any{&name, &base, &floor, &domain, &at.Epoch, &at.Number, &earlier}, func() {
		region := snapshot.Region{Name: name, Base: limit.Share(base), Floor: limit.Share(base) * r.floor / limit.Whole, Domain: domain}
		if earlier != nil {
			region.Earlier = earlierShares(earlier, time.Now())
		}
		if floor != nil {
			// Never above the base: the floors of all regions must fit into one limit, also while a change of the base split is
			// under way. Where rights are lost nothing but the floors counts.
			region.Floor = min(limit.Share(*floor), region.Base)
		}
		r.Regions = append(r.Regions, region)
		r.RegionsAt = r.RegionsAt.Max(r.at(at))
	})
	if err != nil {
		return err
	}
	err = r.each(queryRegionTombstone, nil, []any{&at.Epoch, &at.Number}, func() { r.RegionsAt = r.RegionsAt.Max(r.at(at)) })
	sortRegions(r.Regions)
	if len(r.Regions) == 0 {
		// A deployment that has declared no regions is one region.
		r.Regions = []snapshot.Region{{Name: own, Base: limit.Whole, Floor: r.floor}}
	}
	return err
}

// earlierRow is an entry of the column earlier_shares, its time turned into an age in seconds by the database's clock.
type earlierRow struct {
	Share limit.Share `json:"share"`
	Age   float64     `json:"age"`
}

// earlierShares is never nil: the ledger knows that there was nothing.
func earlierShares(rows []earlierRow, now time.Time) []snapshot.Earlier {
	all := make([]snapshot.Earlier, 0, len(rows))
	for _, e := range rows {
		age := min(max(0, e.Age), float64(limit.MaxPeriodSeconds))
		all = append(all, snapshot.Earlier{Share: e.Share, Until: now.Add(-time.Duration(age * float64(time.Second)))})
	}
	return all
}

// noteEarlier is for sources that keep no history of the base split: what this gateway itself has seen change. Regions that were
// not there had nothing.
func noteEarlier(regions, old []snapshot.Region, now time.Time) []snapshot.Region {
	if len(old) == 0 {
		return regions
	}
	noted := slices.Clone(regions)
	for i := range noted {
		r := &noted[i]
		if r.Earlier != nil {
			continue
		}
		var before snapshot.Region
		if k := slices.IndexFunc(old, func(o snapshot.Region) bool { return o.Name == r.Name }); k >= 0 {
			before = old[k]
		}
		r.Earlier = before.Earlier
		if before.Base != r.Base {
			r.Earlier = append(slices.Clip(r.Earlier), snapshot.Earlier{Share: before.Base, Until: now})
			r.Earlier = r.Earlier[max(0, len(r.Earlier)-mostEarlier):]
		}
	}
	return noted
}

// mostEarlier bounds what is remembered of a base share that changes all the time. The ledger has the same bound.
const mostEarlier = 64

// sameRegions tells whether two lists say the same; the ages of earlier shares are not exact.
func sameRegions(a, b []snapshot.Region) bool {
	return slices.EqualFunc(a, b, func(x, y snapshot.Region) bool {
		return x.Name == y.Name && x.Base == y.Base && x.Floor == y.Floor && x.Domain == y.Domain && len(x.Earlier) == len(y.Earlier)
	})
}

// sortRegions puts regions in the order in which a snapshot keeps them.
func sortRegions(regions []snapshot.Region) {
	slices.SortFunc(regions, func(a, b snapshot.Region) int { return strings.Compare(a.Name, b.Name) })
}
