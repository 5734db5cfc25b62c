package respond

import (
	"net/http"
	"strconv"

	"partidor.dev/partidor/shared/headers"
)

// Problem is one kind of answer that the gateway gives itself.
type Problem struct {
	Status int
	// Type is a URI that names the kind (RFC 9457).
	Type  string
	Title string
	// Code is the gRPC status for gRPC callers.
	Code int
	// Challenge is sent as WWW-Authenticate with 401.
	Challenge bool
}

// The types of the RateLimit draft, and our own.
const (
	draftTypes = "https://iana.org/assignments/http-problem-types#"
	ownTypes   = "https://partidor.dev/problems#"
)

// The problems, in the order a request can meet them.
var (
	AmbiguousPath       = &Problem{Status: http.StatusBadRequest, Type: ownTypes + "ambiguous-path", Title: "The path can be read in more than one way", Code: codeInvalidArgument}
	MalformedRequest    = &Problem{Status: http.StatusBadRequest, Type: ownTypes + "malformed-request", Title: "The request can be read in more than one way", Code: codeInvalidArgument}
	NotFound            = &Problem{Status: http.StatusNotFound, Type: ownTypes + "no-route", Title: "No route matches the request", Code: codeUnimplemented}
	AddressUnknown      = &Problem{Status: http.StatusBadRequest, Type: ownTypes + "unknown-address", Title: "The client's address is unknown", Code: codeInvalidArgument}
	AddressDenied       = &Problem{Status: http.StatusForbidden, Type: ownTypes + "address-denied", Title: "Requests from this address are refused", Code: codePermissionDenied}
	AddressLimited      = &Problem{Status: http.StatusTooManyRequests, Type: draftTypes + "quota-exceeded", Title: "Too many requests from this address", Code: codeResourceExhausted}
	CredentialMissing   = &Problem{Status: http.StatusUnauthorized, Type: ownTypes + "missing-credentials", Title: "A credential is required", Code: codeUnauthenticated, Challenge: true}
	CredentialUnknown   = &Problem{Status: http.StatusUnauthorized, Type: ownTypes + "invalid-credentials", Title: "The credential is not valid", Code: codeUnauthenticated, Challenge: true}
	CredentialAmbiguous = &Problem{Status: http.StatusBadRequest, Type: ownTypes + "ambiguous-credentials", Title: "The request carries more than one credential", Code: codeInvalidArgument}
	CredentialMalformed = &Problem{Status: http.StatusBadRequest, Type: ownTypes + "malformed-credentials", Title: "The credential is malformed", Code: codeInvalidArgument}
	QuotaExceeded       = &Problem{Status: http.StatusTooManyRequests, Type: draftTypes + "quota-exceeded", Title: "The rate limit is exhausted", Code: codeResourceExhausted}
	CostTooLarge        = &Problem{Status: http.StatusRequestEntityTooLarge, Type: ownTypes + "cost-above-capacity", Title: "The request costs more than the limit can ever hold", Code: codeResourceExhausted}
	Blocked             = &Problem{Status: http.StatusForbidden, Type: ownTypes + "blocked", Title: "Requests to this route are blocked", Code: codePermissionDenied}
	ReducedCapacity     = &Problem{Status: http.StatusServiceUnavailable, Type: draftTypes + "temporary-reduced-capacity", Title: "The rate limit cannot be checked at the moment", Code: codeUnavailable}
	BodyTooLarge        = &Problem{Status: http.StatusRequestEntityTooLarge, Type: ownTypes + "body-too-large", Title: "The body is larger than the route accepts", Code: codeResourceExhausted}
	BodyTooSlow         = &Problem{Status: http.StatusRequestTimeout, Type: ownTypes + "body-too-slow", Title: "The body did not arrive in time", Code: codeDeadlineExceeded}
	Overloaded          = &Problem{Status: http.StatusServiceUnavailable, Type: ownTypes + "overloaded", Title: "Too many requests are in flight", Code: codeUnavailable}
	NotReady            = &Problem{Status: http.StatusServiceUnavailable, Type: ownTypes + "not-ready", Title: "The gateway has no rules yet", Code: codeUnavailable}
	UpstreamUnavailable = &Problem{Status: http.StatusServiceUnavailable, Type: ownTypes + "upstream-unavailable", Title: "The upstream is not available", Code: codeUnavailable}
	UpstreamFailed      = &Problem{Status: http.StatusBadGateway, Type: ownTypes + "upstream-failed", Title: "The upstream could not be reached", Code: codeUnavailable}
	UpstreamTimedOut    = &Problem{Status: http.StatusGatewayTimeout, Type: ownTypes + "upstream-timeout", Title: "The upstream did not answer in time", Code: codeDeadlineExceeded}
)

// The gRPC status codes in use.
const (
	codeInvalidArgument   = 3
	codeDeadlineExceeded  = 4
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeUnimplemented     = 12
	codeUnavailable       = 14
	codeUnauthenticated   = 16
)

// ClientClosed is the status that logs and metrics show for a client that left before it was answered.
const ClientClosed = 499

// appendJSON appends the problem's body. policies are the names of the limits that were exceeded, spelt as in the headers:
// what structured fields allow in a string, JSON allows too.
func (p *Problem) appendJSON(dst []byte, policies ...string) []byte {
	dst = append(dst, `{"type":`...)
	dst = strconv.AppendQuote(dst, p.Type)
	dst = append(dst, `,"title":`...)
	dst = strconv.AppendQuote(dst, p.Title)
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(p.Status), 10)
	if len(policies) > 0 {
		dst = append(dst, `,"violated-policies":[`...)
		for i, name := range policies {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = headers.AppendName(dst, name)
		}
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}
