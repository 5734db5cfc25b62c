// Package lua holds the atomic scripts that run inside the regional Redis, one file per operation. The shared arithmetic
// is in prelude.lua, window algorithms in windows.lua, reading and writing in bucket.lua, the clock in clock.lua; all are put
// in front of every script. What nearly every decision needs is in quick.lua, ahead of what it does not need. Scripts run on
// Redis 7 and use nothing that a plain Redis-compatible server lacks.
package lua

import (
	_ "embed" // for the script files
	"strings"
)

var (
	//go:embed clock.lua
	clock string
	//go:embed prelude.lua
	prelude string
	//go:embed windows.lua
	windows string
	//go:embed bucket.lua
	bucket string
	//go:embed quick.lua
	quick string
	//go:embed take.lua
	take string
)

// Take decides requests against their buckets; take.lua describes keys, arguments and replies.
var Take = clock + prelude + quick + windows + bucket + take

// compose is the whole source of a script: the clock, the shared arithmetic, and the script's own part.
func compose(script string) string { return clock + prelude + windows + bucket + script }

// OnClock is a script of this package with another source of time: chunk defines the local function now_us (microseconds since
// 1970). Tests run the shipped scripts on a clock of their own that way.
func OnClock(chunk, script string) string { return chunk + strings.TrimPrefix(script, clock) }
