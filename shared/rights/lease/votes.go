package lease

import "slices"

// MinDomains is how many failure domains must hold voters for leases to run.
const MinDomains = 3

// Control is the control plane's name as a voter. No region may be called so.
const Control = "control"

// Votes is who votes in a deployment: each failure domain once, by any of its voters. So the loss of one domain, whatever
// sits in it, never costs the others their majority.
type Votes struct {
	// Domain of every voter: of each region and, where it has declared one, of Control.
	Domain map[string]string
}

// Run tells whether leases run: every region has declared its domain, and there are at least MinDomains of them.
func (v Votes) Run() bool {
	for _, d := range v.Domain {
		if d == "" {
			return false
		}
	}
	return len(v.domains()) >= MinDomains
}

// others are the domains besides that of region, each once, in order.
func (v Votes) others(region string) (list []string) {
	for _, d := range v.domains() {
		if d != v.Domain[region] {
			list = append(list, d)
		}
	}
	return list
}

func (v Votes) domains() (list []string) {
	for _, d := range v.Domain {
		if d != "" {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
