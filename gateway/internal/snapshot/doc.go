// Package snapshot is the only hand-over between the planes of a gateway: the background writes what it learns (rules,
// plans, API keys, regions, which keys have moved) into a new Snapshot, the request path reads the newest one through one
// atomic pointer.
//
// A Snapshot never changes once published. An edit copies what it touches and shares the rest:
//
//	Holder ──▶ Snapshot ──▶ table: directory ──▶ bucket ──▶ scope (one tenant, plan or everybody) ──▶ rules by route
//	                                 copied       copied      copied when touched                     shared
//
// so that an increment of a few thousand rules over half a million costs milliseconds and a look-up costs one hash, no
// lock and no allocation.
package snapshot
