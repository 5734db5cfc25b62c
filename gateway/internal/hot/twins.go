package hot

import (
	"net/http"
	"strings"
)

// dropTwins removes headers with an underscore in their names: some servers read X_Tenant_Id as X-Tenant-Id, so such a
// header could speak for one that the gateway sets or checks. keep lists names, in canonical form, that may stay.
func dropTwins(h http.Header, keep map[string]bool) {
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 && !keep[name] {
			delete(h, name)
		}
	}
}
