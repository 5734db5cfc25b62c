package route

import "strings"

// NormalizeHost brings a Host header into the form that routes are matched in: lower case, without port, without the
// brackets of an IPv6 address and without the trailing dot of an absolute name. A normal host costs no allocation.
func NormalizeHost(host string) string {
	if strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > 0 {
			return lower(host[1:end])
		}
		return lower(host)
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host, ':') == i {
		host = host[:i]
	}
	return lower(strings.TrimSuffix(host, "."))
}

// lower folds ASCII only: a host name has no other letters, and a path's other letters have no agreed folding.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
