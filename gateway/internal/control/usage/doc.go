// Package usage tells the rest of the deployment what this instance sees: cumulative counters of every key it has decided
// about, and heartbeats that say it lives. It hears the heartbeats of its own region, from which the number of instances
// comes that share a slice while Redis is away.
//
//	decisions ─▶ Table (counters, bounded) ─▶ Reporter ─▶ usage reports, every few seconds, in chunks
//	                                          Heart    ─▶ heartbeats, every second
//	heartbeats of the region ───────────────▶ Members  ─▶ live instances
//
// Everything sent is cumulative or repeated, so that what is lost, doubled or overtaken on the way does no harm.
package usage
