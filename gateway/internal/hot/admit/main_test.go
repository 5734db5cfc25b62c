package admit

import (
	"testing"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind: every call has an end, and every part an owner that waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
