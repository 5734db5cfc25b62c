// Package headers says a decision in HTTP headers: RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers,
// the older X-RateLimit-*, and the seconds of Retry-After (RFC 9110 §10.2.3). The gateway and the middleware both speak
// through it, so that a client cannot tell them apart.
package headers
