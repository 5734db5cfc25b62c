// Package redisstore keeps the rights of package rights in the regional Redis, in the hash of each key's bucket, so that a
// decision and a step of rights on the same key never interleave. Every step is one script call (lua/rights.lua); many
// steps travel in one pipeline.
//
// Beside the buckets it keeps, in the same Redis:
//
//	rl:@region, or in a cluster rl:@region:{tag} for each slot    the region's record: its own incarnation, its phase, and
//	                                                              the lowest incarnation of each peer that is not void
//	rl:@moved:0 … rl:@moved:63                                    sets of the keys that have moved
//
// A key is written into its set before its first move, so that no debit is ever out of reach: whoever starts up reads the
// sets and sends again what is unacknowledged.
package redisstore
