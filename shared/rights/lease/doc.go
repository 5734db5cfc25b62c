// Package lease decides, without I/O, whether a region may use more than its floor while it cannot be seen, and whether the
// others may take what it held (rules R13 and R14 of the protocol). It is for deployments whose voters (the regions, the
// control plane, an optional witness) sit in at least three failure domains; elsewhere there are no leases.
//
//	holder ── renewal, stamped ──▶ every voter        counts from SENDING: sent + Lease
//	holder ◀── answer, same stamp ── voter            counts from ANSWERING: answered + Lease + Margin
//
// A region holds its lease while a majority of all voters, itself included, has answered a renewal sent less than Lease ago.
// A voter agrees that the region's share be minted anew only when its own last answer is older than Lease + Margin. Any
// answer that reached the holder was sent before it was answered, so the holder's count ends first on every path; Margin
// covers clocks that run at different speeds. Only durations are compared, never wall times of two machines.
package lease
