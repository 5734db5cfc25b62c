package hot

import (
	"net/http"
	"slices"
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

// dropUpgrade lets a client switch to the allowed protocols only. Without the header the request is an ordinary one. A
// switch to HTTP/2, say, would hand the client a connection on which nothing is routed or limited any more.
func dropUpgrade(h http.Header, allowed []string) {
	wanted := h["Upgrade"]
	if len(wanted) == 0 {
		return
	}
	if len(wanted) == 1 && slices.ContainsFunc(allowed, func(p string) bool { return strings.EqualFold(p, strings.TrimSpace(wanted[0])) }) {
		return
	}
	delete(h, "Upgrade")
	delete(h, "Http2-Settings")
}
