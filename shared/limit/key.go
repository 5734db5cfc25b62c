package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Names with a meaning of their own in a rule.
const (
	// Wildcard in place of a tenant or a route makes a rule a template.
	Wildcard = "*"
	// TenantRoute is the reserved route of a limit over all of a tenant's routes.
	TenantRoute = "@tenant"
	// PlanPrefix in front of a plan's name, in place of a tenant, addresses every tenant of that plan.
	PlanPrefix = "@"
	// MaxNameBytes bounds tenant, route and plan names, as the ledger's VARCHAR(64) columns do.
	MaxNameBytes = 64
)

// Key is one concrete (tenant, route): what has a limit, a split and a bucket in each region. It is comparable and
// never holds a wildcard.
type Key struct {
	Tenant string
	Route  string
}

func (k Key) String() string { return k.Tenant + "/" + k.Route }

// Redis is the name of the key's bucket, rl:{tenant}:route. The braces make the tenant the hash tag, so all buckets of
// one tenant share a cluster slot. Bytes that would break that shape are percent-encoded, so distinct keys stay distinct.
func (k Key) Redis() string {
	return string(k.AppendRedis(make([]byte, 0, len("rl:{}:")+len(k.Tenant)+len(k.Route))))
}

// AppendRedis appends the name that Redis returns to dst, without other allocation.
func (k Key) AppendRedis(dst []byte) []byte {
	dst = append(dst, "rl:{"...)
	dst = appendEscaped(dst, k.Tenant)
	dst = append(dst, "}:"...)
	return appendEscaped(dst, k.Route)
}

// RedisShard is the name of one shard's bucket, rl:tenant:route:shard, without a hash tag so that the shards of a key
// spread over a cluster.
func (k Key) RedisShard(shard int) string {
	dst := append(make([]byte, 0, len("rl:::")+len(k.Tenant)+len(k.Route)+3), "rl:"...)
	dst = appendEscaped(dst, k.Tenant)
	dst = append(dst, ':')
	dst = appendEscaped(dst, k.Route)
	dst = append(dst, ':')
	return string(strconv.AppendInt(dst, int64(shard), 10))
}

// ParseRedis is the inverse of Redis. Names of shards and foreign keys are refused.
func ParseRedis(name string) (Key, error) {
	rest, ok := strings.CutPrefix(name, "rl:{")
	if !ok {
		return Key{}, fmt.Errorf("redis key %q is not a bucket", name)
	}
	tenant, route, ok := strings.Cut(rest, "}:")
	if !ok {
		return Key{}, fmt.Errorf("redis key %q has no closing hash tag", name)
	}
	if strings.IndexByte(route, ':') >= 0 {
		return Key{}, fmt.Errorf("redis key %q lies beside a bucket and is none", name)
	}
	t, err := unescape(tenant)
	if err != nil {
		return Key{}, fmt.Errorf("redis key %q: %w", name, err)
	}
	r, err := unescape(route)
	if err != nil {
		return Key{}, fmt.Errorf("redis key %q: %w", name, err)
	}
	return Key{Tenant: t, Route: r}, nil
}

const upperHex = "0123456789ABCDEF"

func mustEscape(c byte) bool {
	return c < 0x20 || c == 0x7f || c == '{' || c == '}' || c == ':' || c == '%'
}

func appendEscaped(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; mustEscape(c) {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out = append(out, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errors.New("escape cut short")
		}
		v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("bad escape %q", s[i:i+3])
		}
		out = append(out, byte(v))
		i += 2
	}
	return string(out), nil
}

// ValidateName checks a tenant, route or plan name as it may appear in a key: 1 to MaxNameBytes bytes of UTF-8, no NUL,
// not the wildcard and not one of the reserved names. field is the name used in the error.
func ValidateName(field, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: must not be empty", field)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%s: %d bytes, at most %d", field, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s: must be UTF-8", field)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%s: must not hold a NUL byte", field)
	case name == Wildcard:
		return fmt.Errorf("%s: %q is the wildcard and no name", field, name)
	case strings.HasPrefix(name, PlanPrefix):
		return fmt.Errorf("%s: names that begin with %q are reserved", field, PlanPrefix)
	}
	return nil
}
