// Package app starts, runs and stops one gateway. It only wires:
//
//	config ─▶ telemetry ─▶ admin port ─▶ store ─▶ rules ─▶ nats ─▶ usage, exchange ─▶ admit ─▶ handler ─▶ data port
//
// and on the way down first stops being ready, lets requests in flight end, then stops the parts in the reverse order,
// each within a bound. A demonstration starts it in its own process.
package app
