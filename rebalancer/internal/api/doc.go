// Package api is the rebalancer's admin port: the versioned JSON API that partidorctl and the console use, health,
// readiness and metrics.
//
// Callers carry a bearer token that stands for a name and a role: viewers look, operators change. Errors are
// application/problem+json and name the field they are about. Lists come in pages and are searched here, not by the
// client. Every change is made on behalf of the caller, with a reason, and lands in the history.
package api
