package config

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"partidor.dev/partidor/shared/limit"
)

// Validate reports every fault of a completed configuration (SetDefaults), each naming its field. Whether two routes
// contradict each other is decided by the route table, which is built from it.
func (c *Config) Validate() error {
	var f faults
	address(&f, "listen", c.Listen)
	c.validateServer(&f)
	c.validateAdmin(&f)
	regionName(&f, "region", c.Region)
	if err := limit.ValidateName("instance", c.Instance); err != nil {
		f.Add("instance", "%s", strings.TrimPrefix(err.Error(), "instance: "))
	}
	c.Identity.validate(&f)
	c.Addresses.validate(&f)
	c.CORS.validate(&f)
	c.validateUpstreams(&f)
	c.validateRoutes(&f)
	c.validateStores(&f)
	c.Decision.validate(&f)
	c.Fallback.validate(&f)
	oneOf(&f, "exchange.fast_loop", c.Exchange.FastLoop, "on", "off")
	between(&f, "exchange.floor", c.Exchange.Floor, 0, int64(limit.Whole))
	positive(&f, "exchange.home_budget", c.Exchange.HomeBudget)
	positive(&f, "usage.interval", c.Usage.Interval)
	positive(&f, "usage.heartbeat", c.Usage.Heartbeat)
	atLeast(&f, "usage.max_keys", c.Usage.MaxKeys, 1)
	oneOf(&f, "telemetry.log_level", c.Telemetry.LogLevel, "debug", "info", "warn", "error")
	if n := len(c.Telemetry.Tenants); n > maxNamedTenants {
		f.Add("telemetry.tenants", "%d tenants, at most %d: each has series of its own", n, maxNamedTenants)
	}
	return f.Err()
}

// maxNamedTenants bounds the tenants with series of their own.
const maxNamedTenants = 100

func (c *Config) validateServer(f *faults) {
	s := &c.Server
	positive(f, "server.read_header_timeout", s.ReadHeaderTimeout)
	positive(f, "server.body_timeout", s.BodyTimeout)
	positive(f, "server.idle_timeout", s.IdleTimeout)
	between(f, "server.max_header_bytes", s.MaxHeaderBytes, 4<<10, 1<<20)
	between(f, "server.max_concurrent_streams", s.MaxConcurrentStreams, 1, 10_000)
	for i, name := range s.UnderscoreHeaders {
		headerName(f, index("server.underscore_headers", i), name)
		c.mayPass(f, index("server.underscore_headers", i), strings.ReplaceAll(name, "_", "-"))
	}
	for i, name := range s.PassHeaders {
		headerName(f, index("server.pass_headers", i), name)
		c.mayPass(f, index("server.pass_headers", i), name)
	}
	notNegative(f, "server.drain_delay", s.DrainDelay)
	positive(f, "server.drain_timeout", s.DrainTimeout)
	if c.TLS.Enabled() && (c.TLS.CertFile == "" || c.TLS.KeyFile == "") {
		f.Add("tls", "cert_file and key_file belong together")
	}
	oneOf(f, "tls.min_version", c.TLS.MinVersion, "1.2", "1.3")
	if c.TLS.ClientCAFile != "" && !c.TLS.Enabled() {
		f.Add("tls.client_ca_file", "needs cert_file and key_file")
	}
}

// mayPass refuses headers that the gateway sets itself, or drops because it speaks another one in their place.
func (c *Config) mayPass(f *faults, field, name string) {
	for _, own := range []string{c.Identity.TenantHeader, "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded"} {
		if strings.EqualFold(name, own) {
			f.Add(field, "would let clients speak for %s", own)
		}
	}
}

func (c *Config) validateAdmin(f *faults) {
	host := address(f, "admin.listen", c.Admin.Listen)
	if c.Admin.Listen == c.Listen && !strings.HasSuffix(c.Listen, ":0") { // port 0 is a different one each time
		f.Add("admin.listen", "%q is the data port", c.Admin.Listen)
	}
	onlyOne(f, "admin", "token_file", c.Admin.TokenFile, "token_env", c.Admin.TokenEnv)
	if !loopback(host) && c.Admin.TokenFile == "" && c.Admin.TokenEnv == "" {
		f.Add("admin.listen", "%q is not loopback: give token_file or token_env", c.Admin.Listen)
	}
}

// address checks host:port and returns the host.
func address(f *faults, field, v string) string {
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		f.Add(field, "%q, must be host:port", v)
		return ""
	}
	if _, err := net.LookupPort("tcp", port); err != nil { //nolint:noctx // a number, or a name in a file of this machine
		f.Add(field, "%q, port must be from 0 to 65535", v)
	}
	return host
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// regionName demands a name that can stand in a NATS subject and in a Redis field.
func regionName(f *faults, field, v string) {
	if v == "" {
		f.Add(field, "must not be empty")
		return
	}
	if strings.ContainsFunc(v, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) }) {
		f.Add(field, "%q, must hold only a-z, 0-9, - and _", v)
	}
	if len(v) > limit.MaxNameBytes {
		f.Add(field, "%d bytes, at most %d", len(v), limit.MaxNameBytes)
	}
}

func positive(f *faults, field string, d time.Duration) {
	if d <= 0 {
		f.Add(field, "%s, must be above 0", d)
	}
}

func notNegative(f *faults, field string, d time.Duration) {
	if d < 0 {
		f.Add(field, "%s, must not be negative", d)
	}
}

func onlyOne(f *faults, parent, a, av, b, bv string) {
	if av != "" && bv != "" {
		f.Add(parent, "give %s or %s, not both", a, b)
	}
}

func headerName(f *faults, field, v string) {
	if !httpguts.ValidHeaderFieldName(v) {
		f.Add(field, "%q is no header name", v)
	}
}

func networks(f *faults, field string, list []string) {
	for i, v := range list {
		if _, err := ParseNetwork(v); err != nil {
			f.Add(index(field, i), "%s", err)
		}
	}
}

func duplicates(list []string) bool {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) != len(list)
}
