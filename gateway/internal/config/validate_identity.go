package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// ParseNetwork reads a network such as 10.0.0.0/8, or one address as a network of its own.
func ParseNetwork(v string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(v); err == nil {
		if addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q, a network has no zone", v)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(v)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no network such as 10.0.0.0/8", v)
	}
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("%q has bits beyond its width, write %s", v, p.Masked())
	}
	return p, nil
}

func (i *Identity) validate(f *faults) {
	oneOf(f, "identity.mode", i.Mode, IdentityAPIKey, IdentityHeader)
	headerName(f, "identity.header", i.Header)
	if strings.EqualFold(i.Header, "Authorization") {
		f.Add("identity.header", "for Authorization give authorization_schemes")
	}
	headerName(f, "identity.tenant_header", i.TenantHeader)
	if strings.EqualFold(i.TenantHeader, i.Header) && i.Mode == IdentityAPIKey {
		f.Add("identity.tenant_header", "must differ from header: upstreams would be told the key")
	}
	for n, s := range i.Schemes {
		headerName(f, index("identity.authorization_schemes", n), s)
	}
}

func (a *Addresses) validate(f *faults) {
	networks(f, "addresses.trusted_proxies", a.TrustedProxies)
	oneOf(f, "addresses.header", a.Header, XForwardedForHeader, ForwardedHeader)
	between(f, "addresses.ipv4_prefix", a.IPv4Prefix, 8, 32)
	between(f, "addresses.ipv6_prefix", a.IPv6Prefix, 16, 128)
	atLeast(f, "addresses.guard.requests", a.Guard.Requests, 0)
	positive(f, "addresses.guard.window", a.Guard.Window)
	for n, e := range a.Allow {
		networks(f, index("addresses.allow", n)+".network", []string{e.Network})
	}
	for n, e := range a.Deny {
		networks(f, index("addresses.deny", n)+".network", []string{e.Network})
	}
}

func (c *CORS) validate(f *faults) {
	for n, o := range c.Origins {
		if o == "*" {
			if c.Credentials {
				f.Add("cors.credentials", "browsers refuse credentials together with the origin \"*\"")
			}
			continue
		}
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			f.Add(index("cors.origins", n), "%q, must be scheme://host[:port]", o)
		}
	}
	notNegative(f, "cors.max_age", c.MaxAge)
}

func index(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
