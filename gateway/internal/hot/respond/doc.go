// Package respond says in HTTP what was decided: the limit's headers on every response, and the gateway's own answers when
// a request goes no further. Answers are problem details (RFC 9457), or trailers-only responses for gRPC callers.
package respond
