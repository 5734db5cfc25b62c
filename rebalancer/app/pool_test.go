package app

import (
	"strings"
	"testing"
)

// The connections to the ledger and the calls over them are among the metrics: how many there are, may be, and how long calls take.
func TestLedgersPoolIsMeasured(t *testing.T) {
	w := newWorld(t)
	url, _ := w.start(t, "one")
	eventually(t, "metrics of the ledger's pool", func() bool {
		page := w.metrics(t, url)
		for _, want := range []string{"pgxpool_max_connections", "pgxpool_acquires_total", "db_client_operation_duration_seconds_count{"} {
			if !strings.Contains(page, "\n"+want) {
				return false
			}
		}
		return true
	})
}
