package modelcheck

import (
	"testing"
	"time"
)

func TestShortScopesHold(t *testing.T) {
	for _, c := range Short() {
		t.Run(c.Name, func(t *testing.T) {
			begin := time.Now()
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
