package modelcheck

import (
	"testing"
	"time"
)

// TestScopesHold searches the short scopes, and with -long the long ones too.
func TestScopesHold(t *testing.T) {
	scopes := Short()
	if *long {
		scopes = append(scopes, Long()...)
	}
	for _, c := range scopes {
		t.Run(c.Name, func(t *testing.T) {
			begin := time.Now()
			if raced {
				c.MaxStates = 5000
			}
			r, err := Search(c)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v %v", r, time.Since(begin).Round(time.Millisecond))
			if r.Violation != "" {
				t.Fatal("violated")
			}
		})
	}
}
