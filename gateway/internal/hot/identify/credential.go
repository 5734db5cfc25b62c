package identify

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Why a request names no tenant.
var (
	// ErrMissing: the request carries no credential.
	ErrMissing = errors.New("no credential")
	// ErrUnknown: the credential stands for no tenant, or no longer does.
	ErrUnknown = errors.New("unknown credential")
	// ErrAmbiguous: the request carries more than one credential, be they equal or not.
	ErrAmbiguous = errors.New("more than one credential")
	// ErrMalformed: the credential cannot be one: too long, or bytes that no key has.
	ErrMalformed = errors.New("malformed credential")
)

// MaxCredentialBytes bounds a credential; longer ones are malformed.
const MaxCredentialBytes = 1024

// queryAlways is the query parameter that counts as a second credential even where none is accepted from the query.
const queryAlways = "api_key"

// parser finds the one credential of a request.
type parser struct {
	header  string   // In canonical form.
	schemes []string // Of Authorization.
	query   string   // Empty: no credential is accepted from the query.
}

// find returns the credential without its surroundings. It never looks at what the credential means.
func (p *parser) find(h http.Header, rawQuery string) (string, error) {
	var found string
	count := 0
	if values := h[p.header]; len(values) > 0 {
		for _, v := range values {
			v = trim(v)
			if strings.IndexByte(v, ',') >= 0 {
				return "", ErrAmbiguous
			}
			if v != "" {
				found = v
			}
		}
		// Two lines are two credentials, whatever they hold: others on the way may read the first or the last.
		if found != "" || len(values) > 1 {
			count = len(values)
		}
	}
	if len(p.schemes) > 0 {
		values := h["Authorization"]
		for _, v := range values {
			if token, ok := p.authorization(v); ok {
				found = token
				count += len(values)
				break
			}
		}
	}
	value, n, err := p.fromQuery(rawQuery)
	switch {
	case err != nil:
		return "", err
	case n > 0 && p.query != "":
		found, count = value, count+n
	case n > 0 && count > 0:
		return "", ErrAmbiguous
	}
	switch {
	case count > 1:
		return "", ErrAmbiguous
	case found == "":
		return "", ErrMissing
	}
	return found, check(found)
}

// authorization reads "scheme credential" of one of the schemes: the scheme without regard to case, any number of spaces. Tabs
// count as spaces, as they do for many upstreams.
func (p *parser) authorization(v string) (token string, ok bool) {
	scheme := trim(v)
	if i := strings.IndexAny(scheme, " \t"); i >= 0 {
		scheme, token = scheme[:i], scheme[i:]
	}
	for _, s := range p.schemes {
		if strings.EqualFold(scheme, s) {
			return trim(token), true
		}
	}
	return "", false
}

// fromQuery counts the credentials in the query and returns the last. Escaped spellings of the name count, and a semicolon
// ends a parameter as it does for some upstreams: no reading of the query may find a credential that this one misses.
func (p *parser) fromQuery(raw string) (value string, n int, err error) {
	name := p.query
	if name == "" {
		name = queryAlways
	}
	for raw != "" {
		var pair string
		pair, raw = cutParameter(raw)
		key, v, _ := strings.Cut(pair, "=")
		if !p.sameName(key, name) {
			continue
		}
		n++
		if value = v; strings.ContainsAny(v, "%+") {
			if value, err = url.QueryUnescape(v); err != nil {
				return "", n, ErrMalformed
			}
		}
	}
	return value, n, nil
}

// cutParameter splits a query behind its first parameter.
func cutParameter(raw string) (pair, rest string) {
	if i := strings.IndexAny(raw, "&;"); i >= 0 {
		return raw[:i], raw[i+1:]
	}
	return raw, ""
}

func (p *parser) sameName(key, name string) bool {
	if key == name {
		return true
	}
	if len(key) <= len(name) || strings.IndexByte(key, '%') < 0 {
		return false
	}
	plain, err := url.QueryUnescape(key)
	return err == nil && plain == name
}

func check(credential string) error {
	if len(credential) > MaxCredentialBytes {
		return ErrMalformed
	}
	for i := 0; i < len(credential); i++ {
		if c := credential[i]; c <= ' ' || c == 0x7f {
			return ErrMalformed
		}
	}
	return nil
}

func trim(s string) string { return strings.Trim(s, " \t") }

// stripQuery is the query without the credential's parameter.
func (p *parser) stripQuery(raw string) string {
	if p.query == "" {
		return raw
	}
	if _, n, _ := p.fromQuery(raw); n == 0 {
		return raw
	}
	kept := make([]byte, 0, len(raw))
	for raw != "" {
		pair, rest := cutParameter(raw)
		if key, _, _ := strings.Cut(pair, "="); !p.sameName(key, p.query) {
			kept = append(kept, raw[:len(raw)-len(rest)]...) // with what ended it
		}
		raw = rest
	}
	return strings.TrimRight(string(kept), "&;")
}
