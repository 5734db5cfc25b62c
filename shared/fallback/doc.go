// Package fallback decides while Redis is away.
//
//	          errors or slow answers                    trial due
//	closed ────────────────────────────▶ open ────────────────────────────▶ half-open
//	   ▲                                   ▲                                    │  │
//	   │                                   └──────────── a trial fails ─────────┘  │
//	   └─────────────────────── three trials in a row succeed ─────────────────────┘
//
// A Breaker says whether Redis may be asked. While it may not, a Local limiter gives each instance its part of the
// region's last confirmed slice, starting from the level last seen in Redis so that neither an outage nor a flapping
// server mints a burst. What it admits is owed: the instance settles it with the first take it makes in Redis again.
//
// In each outage a key's admissions exceed its limit by at most the sum over the cut-off instances of max(1, slice ÷
// instances), plus their rates while others still reach Redis; settling takes what was admitted out of the bucket afterwards,
// down to −capacity. A single instance that has seen everything exceeds nothing (settle_rapid_test.go).
//
// Nothing here reads a clock: now is an argument, and only differences of it count.
package fallback
