// Package agent is what one region's agent does about rights, without I/O and without a clock: inputs are what instances
// saw, what peers and the rebalancer said, what steps reported, and the time; outputs are steps to execute on the region's
// store and messages to send. Gateways run it over Redis and NATS (gateway/internal/control/exchange), the simulator over
// States in virtual time.
//
//	instances ── Observe ──▶ ┌───────┐ ── Steps ──▶ store ── Reported ──▶ (back in)
//	rebalancer ─ Advise ───▶ │ Agent │ ── Rows, Acks ──▶ peers
//	peers ── Hear… ────────▶ └───────┘ ── Asks ────────▶ peers
//	              Tick(now) ────▲
//
// Nothing here is needed for safety: every step is checked where it is executed, and a lost or invented message costs
// efficiency only. What it decides is who asks whom, for how much, when share moves rather than tokens, what a donor keeps for
// itself, and how many messages a key may cost.
//
// # The fast loop
//
// A region whose bucket will run dry asks its peers: for tokens now (need), for tokens as they come (flow), and, where its
// demand has been above its rate for a second or two, for share (rate). A region whose bucket is merely not full asks for
// what would overflow elsewhere (fill). A donor answers from what its bucket holds above a reserve for its own demand. Asks
// that bring nothing back off. Where the capacity is below about three round trips of the rate, loans can hurt: there they
// stay a small part of the slice and are never taken ahead.
package agent
