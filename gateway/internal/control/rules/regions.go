package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	)
	r.Regions = []snapshot.Region{}
	err := r.each(queryRegions, nil, []any{&name, &base, &floor, &domain, &at.Epoch, &at.Number}, func() {
		region := snapshot.Region{Name: name, Base: limit.Share(base), Floor: limit.Share(base) * r.floor / limit.Whole, Domain: domain}
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

// sortRegions puts regions in the order in which a snapshot keeps them.
func sortRegions(regions []snapshot.Region) {
	slices.SortFunc(regions, func(a, b snapshot.Region) int { return strings.Compare(a.Name, b.Name) })
}
