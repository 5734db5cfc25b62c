package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// Role is what a caller may do.
type Role uint8

// The roles, each including the ones before it.
const (
	Nobody Role = iota
	Viewer
	Operator
)

// Token lets its bearer act in a role under a name.
type Token struct {
	Name string
	Role Role
	Hash [32]byte // SHA-256
}

// Access says who may do what. Anonymous is the role of callers without a token.
type Access struct {
	Tokens    []Token
	Anonymous Role
}

// Caller is who makes a request.
type Caller struct {
	Name string
	Role Role
}

// identify finds the caller. A token that is not known is nobody, even where anonymous callers are welcome.
func (a *Access) identify(r *http.Request) Caller {
	given := r.Header.Get("Authorization")
	if given == "" {
		if c, err := r.Cookie(tokenCookie); err == nil {
			given = "Bearer " + c.Value
		}
	}
	if given == "" && loopbackHost(r.Host) {
		return Caller{Name: "anonymous", Role: a.Anonymous}
	}
	scheme, token, _ := strings.Cut(given, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Caller{}
	}
	hash := sha256.Sum256([]byte(strings.TrimSpace(token)))
	var caller Caller
	for i := range a.Tokens {
		t := &a.Tokens[i]
		if subtle.ConstantTimeCompare(hash[:], t.Hash[:]) == 1 {
			caller = Caller{Name: t.Name, Role: t.Role}
		}
	}
	return caller
}

// loopbackHost tells whether a request was made to a name of this machine: a browser can be led here under a foreign name
// that resolves to loopback, and would let that name's pages read the answers.
func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tokenCookie carries the token of the console's session; it is HttpOnly and SameSite=Strict.
const tokenCookie = "partidor_token"

type callerKey struct{}

// CallerOf is who makes the request that ctx belongs to.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// allow lets callers with at least the given role through.
func (s *Server) allow(role Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := s.Access.identify(r)
		switch {
		case caller.Role >= role:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
		case caller.Role == Nobody:
			w.Header().Set("WWW-Authenticate", `Bearer realm="partidor"`)
			writeProblem(w, problem(http.StatusUnauthorized, "token-needed", "A token is needed", "send Authorization: Bearer …"))
		default:
			writeProblem(w, problem(http.StatusForbidden, "operator-needed", "Operators only", caller.Name+" is a viewer"))
		}
	})
}
