// Package leader keeps one rebalancer active among several.
//
// The lease is one row, (term, holder, renewals), in a store that changes it by compare-and-set. Nobody compares wall
// clocks. The leader renews every second; a candidate that sees the row stand still for a whole lease, measured on its own
// monotonic clock from when it *received* the row, takes the next term. The leader counts from when it *sent* its last
// confirmed renewal and stops trusting itself one margin before a lease has passed, so it has stopped before anybody takes over:
//
//	           row stood still for a lease, or has no holder: compare-and-set to the next term
//	┌───────────┐ ───────────────────────────────────────────────────────────────▶ ┌─────────┐
//	│ candidate │                                                                   │ leading │ ─┐ renewed: trust until
//	└───────────┘ ◀─────────────────────────────────────────────────────────────── └─────────┘ ◀┘ sent + lease − margin
//	           renewal refused (another term), or trust has run out: work is cancelled and waited for
//
//	stop while leading: work is cancelled and waited for, then the row is given up, so that another leads at once
//
// A process that is stopped for longer than a lease and continues may believe for an instant that it leads. It does no
// harm: every write carries the term and is refused by the ledger, every advice carries it and is ignored by the regions.
package leader
