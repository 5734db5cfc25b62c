package config

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/shared/config"
)

// Validate reports every fault at once.
func (c *Config) Validate() error {
	var f config.Faults
	c.validateListen(&f)
	c.Access.validate(&f, c.Listen)
	if c.Instance == "" || len(c.Instance) > 64 {
		f.Add("instance", "must be 1 to 64 bytes")
	}
	c.validateLedger(&f)
	c.NATS.validate(&f)
	if c.Lease.Duration < time.Second || c.Lease.Duration > 4*time.Second {
		f.Add("lease.duration", "%v, must be from 1s to 4s, so that a take-over needs at most 5s", c.Lease.Duration)
	}
	if _, err := c.Values(); err != nil {
		f.Merge("parameters", err)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Telemetry.LogLevel)); err != nil {
		f.Add("telemetry.log_level", "%q, must be debug, info, warn or error", c.Telemetry.LogLevel)
	}
	return f.Err()
}

func (c *Config) validateListen(f *config.Faults) {
	if _, port, err := net.SplitHostPort(c.Listen); err != nil {
		f.Add("listen", "must be host:port")
	} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		f.Add("listen", "port %q, must be from 0 to 65535", port)
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		f.Add("tls", "cert_file and key_file go together")
	}
	if c.TLS.ClientCAFile != "" && c.TLS.CertFile == "" {
		f.Add("tls.client_ca_file", "needs cert_file and key_file")
	}
}

// Loopback tells whether only this machine can reach address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (a *Access) validate(f *config.Faults, listen string) {
	switch {
	case a.Anonymous != "" && a.Anonymous != RoleViewer && a.Anonymous != RoleOperator:
		f.Add("access.anonymous", "%q, must be viewer or operator, or left out", a.Anonymous)
	case a.Anonymous != "" && !Loopback(listen):
		f.Add("access.anonymous", "only where listen is a loopback address")
	case len(a.Tokens) == 0 && !Loopback(listen):
		f.Add("access.tokens", "needed where listen is not a loopback address")
	}
	seen := make(map[string]bool)
	for i, t := range a.Tokens {
		at := fmt.Sprintf("access.tokens[%d]", i)
		if t.Name == "" || len(t.Name) > 64 || seen[t.Name] {
			f.Add(at+".name", "must be 1 to 64 bytes and not given twice")
		}
		seen[t.Name] = true
		if t.Role != RoleViewer && t.Role != RoleOperator {
			f.Add(at+".role", "%q, must be viewer or operator", t.Role)
		}
		given := 0
		for _, source := range []string{t.SHA256, t.TokenFile, t.TokenEnv} {
			if source != "" {
				given++
			}
		}
		if given != 1 {
			f.Add(at, "give exactly one of sha256, token_file and token_env")
		}
		if raw, err := hex.DecodeString(t.SHA256); t.SHA256 != "" && (err != nil || len(raw) != 32) {
			f.Add(at+".sha256", "must be 64 hex digits")
		}
	}
}

func (c *Config) validateLedger(f *config.Faults) {
	given := 0
	for _, source := range []string{c.Postgres.URL, c.Postgres.URLFile, c.Postgres.URLEnv} {
		if source != "" {
			given++
		}
	}
	switch {
	case given > 1:
		f.Add("postgres", "give one of url, url_file and url_env")
	case given == 1 && c.RulesFile != "":
		f.Add("rules_file", "give postgres or rules_file, not both")
	case given == 0 && c.RulesFile == "":
		f.Add("postgres", "regions and rules must come from postgres or from rules_file")
	}
	if u, err := url.Parse(c.Postgres.URL); err != nil {
		f.Add("postgres.url", "is not a URL")
	} else if _, has := u.User.Password(); has {
		f.Add("postgres.url", "must not hold a password: give url_file or url_env")
	}
	if n := c.Postgres.MaxConnections; n < 3 || n > 1000 {
		f.Add("postgres.max_connections", "%d, must be from 3 to 1000", n)
	}
}

func (n *NATS) validate(f *config.Faults) {
	if len(n.URLs) == 0 {
		f.Add("nats.urls", "at least one is needed: without NATS there is nothing to rebalance")
	}
	for i, u := range n.URLs {
		at := fmt.Sprintf("nats.urls[%d]", i)
		if p, err := url.Parse(u); err != nil || p.Host == "" {
			f.Add(at, "must be nats://host:port or tls://host:port")
		} else if p.User != nil {
			f.Add(at, "must not hold a password: give credentials_file or nkey_file")
		}
	}
	if n.CredentialsFile != "" && n.NKeyFile != "" {
		f.Add("nats.nkey_file", "give credentials_file or nkey_file, not both")
	}
	if (n.TLS.CertFile == "") != (n.TLS.KeyFile == "") {
		f.Add("nats.tls", "cert_file and key_file go together")
	}
}

// Values are the parameters that hold where the ledger sets none.
func (c *Config) Values() (parameter.Values, error) {
	var f config.Faults
	v := parameter.Default()
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		raw, err := json.Marshal(c.Parameters[name])
		if err == nil {
			v, err = v.With(map[string]json.RawMessage{name: raw})
		}
		if err != nil {
			f.Add(name, "%s", strings.TrimPrefix(err.Error(), name+": "))
		}
	}
	return v, f.Err()
}
