package rules

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// File takes the rules from a YAML file. The file is believed whole or not at all, and only if its revision has risen:
// everything in it then has that revision (epoch 0, so that a ledger is newer than any file).
type File struct {
	path   string
	region string
	floor  limit.Share
	read   [sha256.Size]byte // of what was last accepted
	inc    *Increment        // what that said
}

// NewFile reads path for a gateway of region. floor is the part of its base share, in parts per million, that a region
// keeps where the file says nothing else.
func NewFile(path, region string, floor limit.Share) *File {
	return &File{path: path, region: region, floor: floor}
}

// Name is the kind of source.
func (f *File) Name() string { return "file" }

// Read takes the whole file where it has changed.
func (f *File) Read(_ context.Context, since limit.Revision) (*Increment, error) {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read rules file: %w", err)
	}
	sum := sha256.Sum256(data)
	if f.inc != nil && sum == f.read {
		if since == (limit.Revision{}) {
			return f.inc, nil
		}
		return &Increment{Reached: since, Regions: f.inc.Regions, RegionsAt: f.inc.RegionsAt}, nil
	}
	file, err := rulesfile.Parse(f.path, data)
	if err != nil {
		return nil, err
	}
	if file.Empty() {
		// Nobody means no rules and no keys by it, and as revision 1 it would stand in the way of the text to come.
		return nil, fmt.Errorf("%s: is empty", f.path)
	}
	at := limit.Revision{Number: max(1, file.Revision)}
	if f.inc != nil && !at.Newer(f.inc.Reached) {
		return nil, fmt.Errorf("%s: revision: %d, must be above %d, which is in force", f.path, file.Revision, f.inc.Reached.Number)
	}
	inc := f.increment(file, at)
	// Regions are judged now, not when published: of this source, everything or nothing is taken.
	if err := snapshot.Empty(f.region).Edit().SetRegions(inc.Regions, at); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	f.read, f.inc = sum, inc
	return inc, nil
}

func (f *File) increment(file *rulesfile.File, at limit.Revision) *Increment {
	inc := &Increment{Whole: true, Reached: at, RegionsAt: at}
	for i := range file.Rules {
		r := &file.Rules[i]
		inc.Rules = append(inc.Rules, snapshot.RuleEntry{Tenant: r.Tenant, Route: r.Route, Rule: r.Limit(at), Revision: at})
	}
	for _, t := range file.Tenants {
		inc.Plans = append(inc.Plans, snapshot.PlanEntry{Tenant: t.ID, Plan: t.Plan, Revision: at})
	}
	for i := range file.APIKeys {
		k := &file.APIKeys[i]
		inc.Keys = append(inc.Keys, Key{Hash: k.Hash(), APIKey: snapshot.APIKey{Tenant: k.Tenant, Enabled: !k.Disabled, Revision: at}})
	}
	if file.Default != nil {
		inc.Default = file.Default.Limit(at)
	}
	for name, r := range file.Regions {
		region := snapshot.Region{Name: name, Base: limit.Share(r.Base), Floor: limit.Share(r.Base) * f.floor / limit.Whole, Domain: r.Domain}
		if r.Floor != nil {
			region.Floor = limit.Share(*r.Floor)
		}
		inc.Regions = append(inc.Regions, region)
	}
	if len(inc.Regions) == 0 {
		inc.Regions = []snapshot.Region{{Name: f.region, Base: limit.Whole, Floor: f.floor}}
	}
	sortRegions(inc.Regions)
	return inc
}
