// Package sim runs Partidor in virtual time: one limit shared by regions with traffic, a network that delays, loses,
// repeats and reorders, partitions and crashes. It drives the code that ships: shared/bucket and shared/rights for what
// regions do, collect and plan for the slow loop. Nothing here copies their arithmetic.
//
// A run is a loop over steps of a few milliseconds:
//
//	messages due ──▶ strategy (timers) ──▶ arrivals per region ──▶ strategy admits ──▶ checker
//
// The checker feeds every admission of every region into one virtual bucket of the whole limit (how far below zero it
// falls is the over-admission) and the same arrivals into one ideal bucket (what a single region without distance would
// have admitted). Arrivals depend on the seed alone, so strategies are compared on the same traffic; the same seed gives
// the same bytes.
package sim
