// Package lua holds the atomic scripts that run inside the regional Redis, one file per operation. The shared arithmetic
// is in prelude.lua, the clock in clock.lua; both are put in front of every script. Scripts run on Redis 7 and use
// nothing that a plain Redis-compatible server lacks.
package lua

import _ "embed" // for the script files

var (
	//go:embed clock.lua
	clock string
	//go:embed prelude.lua
	prelude string
	//go:embed take.lua
	take string
)

// Take decides requests against their buckets; take.lua describes keys, arguments and replies.
var Take = Compose(clock, take)

// Compose is the whole source of a script: a clock (a chunk that defines the local function now_us, in microseconds),
// the shared arithmetic, and the script's own part. Tests use it to run the shipped scripts on a clock of their own.
func Compose(clock, script string) string {
	return clock + "\n" + prelude + "\n" + script
}
