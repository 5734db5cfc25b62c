package collect

import (
	"cmp"
	"slices"

	"partidor.dev/partidor/shared/limit"
)

// order keeps keys in the order of their names. Sorting hundreds of thousands of them at every look would be most of what a
// look costs, so only new ones are sorted, and merged in when the order is asked for.
type order struct {
	sorted, fresh []*key
}

func (o *order) add(k *key) { o.fresh = append(o.fresh, k) }

// all keys in order. The caller must not keep the slice.
func (o *order) all() []*key {
	if len(o.fresh) > 0 {
		slices.SortFunc(o.fresh, func(a, b *key) int { return CompareKeys(a.name, b.name) })
		o.sorted = Merge(o.sorted, o.fresh, func(a, b *key) int { return CompareKeys(a.name, b.name) })
		o.fresh = nil
	}
	return o.sorted
}

func (o *order) remove(gone map[*key]bool) {
	if len(gone) == 0 {
		return
	}
	isGone := func(k *key) bool { return gone[k] }
	o.sorted, o.fresh = slices.DeleteFunc(o.sorted, isGone), slices.DeleteFunc(o.fresh, isGone)
}

// CompareKeys is the order of names: by tenant, then by route.
func CompareKeys(a, b limit.Key) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Route, b.Route))
}

// Merge two slices that are in order into a new one; of equal elements those of a come first.
func Merge[T any](a, b []T, compare func(T, T) int) []T {
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
