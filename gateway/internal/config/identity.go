package config

import "time"

// Identity says how a request names its tenant.
type Identity struct {
	// Mode is "api_key" (default): the key's SHA-256 is looked up among the ledger's keys; or "header": the header's
	// value is the tenant's id, for demonstrations and trusted networks.
	Mode string `yaml:"mode"`
	// Header carries the key. Default X-Api-Key.
	Header string `yaml:"header"`
	// Schemes of the Authorization header that carry a key as well, such as ApiKey or Bearer, without regard to case.
	Schemes []string `yaml:"authorization_schemes"`
	// Query is a query parameter that carries a key as well. Empty (default) accepts none; the parameter api_key beside
	// another credential is refused all the same.
	Query string `yaml:"query"`
	// Forward tells whether upstreams see the credential. Default false: it is removed.
	Forward bool `yaml:"forward_credentials"`
	// TenantHeader tells upstreams the tenant. Default X-Tenant-Id. A client's own header of that name never passes.
	TenantHeader string `yaml:"tenant_header"`
}

// The identity modes.
const (
	IdentityAPIKey = "api_key"
	IdentityHeader = "header"
)

// Addresses says how client addresses are found and bounded.
type Addresses struct {
	// TrustedProxies are the networks whose X-Forwarded-For and Forwarded are believed, such as 10.0.0.0/8.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// Header is what trusted proxies write: X-Forwarded-For (default) or Forwarded. The other one is not believed.
	Header string `yaml:"header"`
	// IPv4Prefix and IPv6Prefix are the widths that count as one client. Defaults 32 and 64.
	IPv4Prefix int `yaml:"ipv4_prefix"`
	IPv6Prefix int `yaml:"ipv6_prefix"`
	// Guard bounds what one client may send before it has named a tenant.
	Guard Guard `yaml:"guard"`
	// Allow and Deny are lists of networks. A denied client gets 403; an allowed one is exempt from Deny and Guard.
	Allow []AddressEntry `yaml:"allow"`
	Deny  []AddressEntry `yaml:"deny"`
}

// The forwarding headers.
const (
	XForwardedForHeader = "X-Forwarded-For"
	ForwardedHeader     = "Forwarded"
)

// Guard is the limit per client address and instance, in requests per fixed window, checked before authentication.
type Guard struct {
	// Requests per Window; 0 (default) turns the guard off.
	Requests int `yaml:"requests"`
	// Window defaults to 60 s.
	Window time.Duration `yaml:"window"`
	// FailuresOnly counts only requests that did not name a known tenant.
	FailuresOnly bool `yaml:"failures_only"`
}

// AddressEntry is one network of a list.
type AddressEntry struct {
	Network string `yaml:"network"`
	// Until ends the entry; absent means never.
	Until time.Time `yaml:"until"`
	// Reason is for people.
	Reason string `yaml:"reason"`
}

// CORS answers browsers' preflights, which cost no tokens, and lets their scripts read the limit's headers.
type CORS struct {
	// Origins that are allowed, such as https://app.example.com, or "*". Empty leaves CORS to the upstreams.
	Origins []string `yaml:"origins"`
	// Methods and Headers a preflight allows. Default: those it asks for.
	Methods []string `yaml:"methods"`
	Headers []string `yaml:"headers"`
	// Credentials allows cookies and Authorization; not together with the origin "*".
	Credentials bool `yaml:"credentials"`
	// MaxAge is how long a browser may keep the answer. Default 10 min.
	MaxAge time.Duration `yaml:"max_age"`
}
