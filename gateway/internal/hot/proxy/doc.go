// Package proxy sends a request to one of its upstream's targets and the answer back: streaming both ways, with trailers,
// upgrades and HTTP/2. Around httputil.ReverseProxy it adds balancing over targets, health checks, a breaker per target,
// timeouts, and repeats where repeating is safe.
//
//	ReverseProxy ──▶ attempts ──▶ pick a target ──▶ breaker ──▶ transport
//	 rewrite           │  ▲        healthy, least      per        per upstream
//	 header edits      └──┘        loaded or in turn   target     and timeout
//	                   only bodyless idempotent requests, or where no byte was sent
package proxy
