// Package exchange is the hands and ears of the region's agent (shared/rights/agent): it hears advice, asks, rows and
// acknowledgements over NATS, runs the agent's steps as scripts in the regional Redis, and sends what the agent has to say.
// There is no policy here.
//
//	decisions ── Heat ── hot keys, many times a second ──▶ ┐
//	usage reports of the region ─────────────────────────▶ │        steps ──▶ redisstore
//	rebalancer ── advice ────────────────────────────────▶ │ Agent  rows, acks, asks ──▶ NATS ──▶ peers
//	peers ── asks, rows, acks ───────────────────────────▶ ┘
//
// Every instance runs it; the one that Options.Leads says drives, so that a key costs one set of messages. That is all the
// election is for: a step is atomic in Redis and rows are cumulative, so two instances that both drive, or none for a while,
// harm nobody. An instance that takes over reads the index of moved keys and sends again what is unacknowledged.
package exchange
