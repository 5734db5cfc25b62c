// Package rights is how regions share one limit without ever exceeding it: the state of ONE key in ONE region as a pure
// state machine, and the policy of the fast loop on top of it. It does no I/O and reads no clock. The Redis form of the
// same machine is in rights/redisstore (scripts in lua/), its exhaustive check in rights/modelcheck.
//
// A key's limit is a conserved quantity. A region gives only what it holds, and is debited before the other is credited.
// Everything a region has ever given a peer is one cumulative row; the peer applies the difference to what it has applied
// before, so lost, repeated and reordered messages are harmless, and acknowledges, so that the row need not be sent again:
//
//	    giver                                      receiver
//	Give/Lend: debit, out += x
//	    Row ── out, cumulative ───────────────────▶ Apply: credit out − in, in := out
//	    Acknowledge: hold −= loan  ◀────────── Ack: in, refused
//
// A region that lost its data, or its lease, comes back under a new incarnation:
//
//	             Fence (lease over)                    Begin (number n)
//	   ┌──────────────────────────────▶ Fenced ────────────────┐
//	   │                                                       ▼
//	Active ──── data lost: Begin (number n, tokens 0) ──▶ Relearning ── Void(n) to every peer
//	   ▲                                                       │         Answer: all counters of the pair
//	   └──────────── Activate: every peer has answered ◀───────┘ Learn
//
// Only an active region gives, lends, applies rows, accepts acknowledgements and answers. A fenced or re-learning one has
// the floor in force: the part of its share that never leaves it.
//
// Invariants, for any interleaving (rules R1–R17 of the protocol are named where the code keeps them):
//
//	Σ share in force + in flight ≤ limit.Whole (equal when all regions are active)
//	Σ effective capacity + in flight ≤ C, hence any interval of length t admits at most C + R·t worldwide
package rights
