package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// One short round of every front answers and is in the table. No rate is judged.
func TestProxies(t *testing.T) {
	var out bytes.Buffer
	if err := runProxies(t.Context(), &out, options{round: 50 * time.Millisecond, rounds: 1}, 4); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{plainFront, openFront, limitedFront, "added p99"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("%s is missing in:\n%s", name, &out)
		}
	}
}
