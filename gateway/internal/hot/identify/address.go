package identify

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"partidor.dev/partidor/gateway/internal/config"
)

// AddressPrefix begins the tenant of callers that are known by their address only. Names that begin with @ are
// reserved, so no credential stands for such a tenant and no bucket is shared with one.
const AddressPrefix = "@ip:"

// Addresses finds client addresses. It is immutable and safe for use by many goroutines.
type Addresses struct {
	trusted   []netip.Prefix
	forwarded bool // Read Forwarded instead of X-Forwarded-For.
	v4, v6    int
	allow     []entry
	deny      []entry
}

type entry struct {
	network netip.Prefix
	until   time.Time
}

// NewAddresses builds the finder of a valid configuration.
func NewAddresses(c config.Addresses) *Addresses {
	a := &Addresses{v4: c.IPv4Prefix, v6: c.IPv6Prefix, forwarded: c.Header == config.ForwardedHeader}
	for _, n := range c.TrustedProxies {
		a.trusted = append(a.trusted, mustNetwork(n))
	}
	for _, e := range c.Allow {
		a.allow = append(a.allow, entry{mustNetwork(e.Network), e.Until})
	}
	for _, e := range c.Deny {
		a.deny = append(a.deny, entry{mustNetwork(e.Network), e.Until})
	}
	return a
}

// mustNetwork reads what the configuration's Validate has accepted.
func mustNetwork(s string) netip.Prefix {
	p, err := config.ParseNetwork(s)
	if err != nil {
		panic("unvalidated configuration: " + err.Error())
	}
	return p
}

// Client is the address of the client: the connection's peer, or, where that is a trusted proxy, the nearest address
// from the right of the forwarding header that is not one. ok is false where that address is unknown: a peer without
// address, or a trusted proxy that forwarded something else; such callers must not be lumped together.
func (a *Addresses) Client(r *http.Request) (addr netip.Addr, ok bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	addr = canonical(peer.Addr())
	if !a.isTrusted(addr) {
		return addr, true
	}
	var lines []string
	if a.forwarded {
		lines = r.Header["Forwarded"]
	} else {
		lines = r.Header["X-Forwarded-For"]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var hop string
			rest, hop, more = cutLast(rest)
			if hop = trim(hop); hop == "" {
				continue
			}
			if addr, ok = a.hop(hop); !ok {
				return netip.Addr{}, false
			}
			if !a.isTrusted(addr) {
				return addr, true
			}
		}
	}
	return addr, true
}

// ByTrusted tells whether a trusted proxy sent the request, so that what it says about the client's connection counts.
func (a *Addresses) ByTrusted(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && a.isTrusted(canonical(peer.Addr()))
}

func (a *Addresses) hop(s string) (netip.Addr, bool) {
	if a.forwarded {
		s = forwardedFor(s)
	}
	return parseHop(s)
}

// cutLast splits a comma-separated list before its last element. Commas inside quotes do not occur in addresses.
func cutLast(list string) (before, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

// forwardedFor is the for parameter of one element of a Forwarded header (RFC 7239), without quotes; empty if there is
// none or more than one.
func forwardedFor(element string) (addr string) {
	found := false
	for element != "" {
		var pair string
		pair, element, _ = strings.Cut(element, ";")
		name, value, _ := strings.Cut(trim(pair), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if found {
			return ""
		}
		found = true
		if addr = value; len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			addr = value[1 : len(value)-1]
		}
	}
	return addr
}

// parseHop reads an address with or without port: 192.0.2.1, 192.0.2.1:443, 2001:db8::1, [2001:db8::1], [2001:db8::1]:443.
func parseHop(s string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return canonical(addr), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return canonical(ap.Addr()), true
	}
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		if addr, err := netip.ParseAddr(s[1 : len(s)-1]); err == nil && addr.Is6() {
			return canonical(addr), true
		}
	}
	return netip.Addr{}, false
}

// canonical makes all spellings of one address equal: no zone, an IPv4 address mapped into IPv6 is IPv4.
func canonical(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func (a *Addresses) isTrusted(addr netip.Addr) bool {
	for _, p := range a.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Network is the network that counts as one client: an IPv4 address, an IPv6 /64, or as configured.
func (a *Addresses) Network(addr netip.Addr) netip.Prefix {
	bits := a.v6
	if addr.Is4() {
		bits = a.v4
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.PrefixFrom(addr, addr.BitLen())
	}
	return p
}

// Tenant is the name under which a client without credential is limited.
func (a *Addresses) Tenant(addr netip.Addr) string {
	p := a.Network(addr)
	buf := append(make([]byte, 0, 64), AddressPrefix...)
	if p.IsSingleIP() {
		return string(p.Addr().AppendTo(buf))
	}
	return string(p.AppendTo(buf))
}

// Verdict is what the address lists say.
type Verdict uint8

// The verdicts. Allowed is an exemption from the guard and from Denied; Unlisted is everybody else.
const (
	Unlisted Verdict = iota
	Allowed
	Denied
)

// Listed looks the client up in the lists; entries that have ended do not count.
func (a *Addresses) Listed(addr netip.Addr, now time.Time) Verdict {
	switch {
	case listed(a.allow, addr, now):
		return Allowed
	case listed(a.deny, addr, now):
		return Denied
	}
	return Unlisted
}

func listed(list []entry, addr netip.Addr, now time.Time) bool {
	for _, e := range list {
		if e.network.Contains(addr) && (e.until.IsZero() || now.Before(e.until)) {
			return true
		}
	}
	return false
}
