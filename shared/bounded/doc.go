// Package bounded holds what one instance remembers of keys in memory that never grows beyond a fixed number of them,
// however many tenants call. Looking up a known key takes no lock and allocates nothing.
//
//	hash(key) ──▶ one of many sets ──▶ 8 places, each an atomic pointer to an entry
//
// A new key that finds its set full takes the place of another: one that is worth nothing, or has not been used the last few
// times the set was full. A key that is asked for all the time is therefore not pushed out by passers-by.
package bounded
