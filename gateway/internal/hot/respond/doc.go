// Package respond says in HTTP what was decided: the headers of a limited route on every response, and the gateway's own
// answers when a request goes no further.
//
// The headers are those of draft-ietf-httpapi-ratelimit-headers (RateLimit-Policy, RateLimit), the older X-RateLimit-*
// and Retry-After (RFC 9110 §10.2.3). Answers are problem details (RFC 9457), or trailers-only responses for gRPC callers.
package respond
