package respond

import (
	"os"
	"strings"
	"testing"
)

// Every problem that a client can meet is explained to it.
func TestProblemsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../deploy/docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Problem{
		AmbiguousPath, MalformedRequest, NotFound, AddressUnknown, AddressDenied, AddressLimited, CredentialMissing, CredentialUnknown,
		CredentialAmbiguous, CredentialMalformed, QuotaExceeded, CostTooLarge, Blocked, ReducedCapacity, BodyTooLarge, BodyTooSlow,
		Overloaded, NotReady, UpstreamUnavailable, UpstreamFailed, UpstreamTimedOut,
	} {
		_, name, _ := strings.Cut(p.Type, "#")
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%d %s is not documented", p.Status, name)
		}
	}
}
