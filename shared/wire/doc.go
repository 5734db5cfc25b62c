// Package wire is what gateways and the rebalancer say to each other over NATS: subjects, messages and their bytes.
//
// Messages are JSON. Every message begins with a Header. Counters are cumulative, so that loss, repetition and reordering
// do no harm. Unknown fields are ignored; an unknown major version is refused and counted by the receiver.
package wire
