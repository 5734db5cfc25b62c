package identify

import (
	"crypto/sha256"
	"net/http"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/shared/limit"
)

// Tenants knows whom a credential belongs to. Implementations answer from memory, at once, without remembering what
// they were asked, and are safe for use by many goroutines. A snapshot is one.
type Tenants interface {
	Tenant(hash [32]byte, now time.Time) (id string, ok bool)
}

// Identifier names the tenant of a request. It is immutable and safe for use by many goroutines.
type Identifier struct {
	parser parser
	byName bool // identity: header
}

// New builds the identifier of a valid configuration.
func New(c config.Identity) *Identifier {
	return &Identifier{
		parser: parser{header: http.CanonicalHeaderKey(c.Header), schemes: c.Schemes, query: c.Query},
		byName: c.Mode == config.IdentityHeader,
	}
}

// Tenant is the tenant whose credential the request carries. The errors are ErrMissing, ErrUnknown, ErrAmbiguous and
// ErrMalformed, never wrapped.
func (i *Identifier) Tenant(r *http.Request, now time.Time, tenants Tenants) (string, error) {
	credential, err := i.parser.find(r.Header, r.URL.RawQuery)
	if err != nil {
		return "", err
	}
	if i.byName {
		if limit.ValidateName("tenant", credential) != nil {
			return "", ErrMalformed
		}
		return credential, nil
	}
	id, ok := tenants.Tenant(hash(credential), now)
	if !ok {
		return "", ErrUnknown
	}
	return id, nil
}

// hash is the SHA-256 of a credential of at most MaxCredentialBytes.
func hash(credential string) [sha256.Size]byte {
	var buf [MaxCredentialBytes]byte
	return sha256.Sum256(buf[:copy(buf[:], credential)])
}

// Strip removes from a header and a query what Tenant would read, for upstreams that are not to see credentials. It
// returns the query that is left.
func (i *Identifier) Strip(h http.Header, rawQuery string) string {
	delete(h, i.parser.header)
	for _, v := range h["Authorization"] {
		if _, ok := i.parser.authorization(v); ok {
			delete(h, "Authorization")
			break
		}
	}
	return i.parser.stripQuery(rawQuery)
}
