package admit

import (
	"testing"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind: every call has an end, and every part an owner that waits for it. A pool that
// has been closed while its server was away tries once more, within a second.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
