package config

import (
	"cmp"
	"fmt"
	"os"
	"time"
)

// Config is the whole file.
type Config struct {
	// Listen is the address of the admin port. Default 127.0.0.1:9180.
	Listen string    `yaml:"listen"`
	TLS    ServerTLS `yaml:"tls"`
	Access Access    `yaml:"access"`
	// Instance names this process in the lease, the history and logs. Default: the host's name and the process id.
	Instance string `yaml:"instance"`

	// Postgres is the ledger. Without it the rebalancer keeps everything in memory and takes regions and rules from
	// RulesFile: for demonstrations and for set-ups of a single rebalancer that can afford to forget.
	Postgres  Postgres `yaml:"postgres"`
	RulesFile string   `yaml:"rules_file"`
	NATS      NATS     `yaml:"nats"`

	// Parameters are the values of run-time parameters that the ledger does not set, by name.
	Parameters map[string]any `yaml:"parameters"`
	Lease      Lease          `yaml:"lease"`
	Telemetry  Telemetry      `yaml:"telemetry"`
}

// ServerTLS protects the admin port. With ClientCAFile only clients with a certificate of that authority may connect.
type ServerTLS struct {
	CertFile     string `yaml:"cert_file"`
	KeyFile      string `yaml:"key_file"`
	ClientCAFile string `yaml:"client_ca_file"`
}

// The roles of the admin API. An operator may change, a viewer may look.
const (
	RoleViewer   = "viewer"
	RoleOperator = "operator"
)

// Access says who may use the admin API.
type Access struct {
	Tokens []Token `yaml:"tokens"`
	// Anonymous is the role of callers without a token: none by default. Only where Listen is a loopback address.
	Anonymous string `yaml:"anonymous"`
}

// Token lets its bearer act in a role under a name. Exactly one source is given; sha256 is the digest of the token in hex.
type Token struct {
	Name      string `yaml:"name"`
	Role      string `yaml:"role"`
	SHA256    string `yaml:"sha256"`
	TokenFile string `yaml:"token_file"`
	TokenEnv  string `yaml:"token_env"`
}

// Postgres is the ledger's database.
type Postgres struct {
	// URL of the database; a password is accepted only through URLFile or URLEnv.
	URL     string `yaml:"url"`
	URLFile string `yaml:"url_file"`
	URLEnv  string `yaml:"url_env"`
	// MaxConnections of the pool, besides two of the election's own. Default 8.
	MaxConnections int `yaml:"max_connections"`
	// Migrate applies missing migrations at start. Default false: `rebalancer migrate up` is a step of its own.
	Migrate bool `yaml:"migrate"`
}

// Enabled tells whether the ledger is a database.
func (p Postgres) Enabled() bool { return p.URL != "" || p.URLFile != "" || p.URLEnv != "" }

// NATS joins regions and rebalancer.
type NATS struct {
	URLs []string `yaml:"urls"`
	// CredentialsFile is a NATS credentials file; or NKeyFile a seed.
	CredentialsFile string    `yaml:"credentials_file"`
	NKeyFile        string    `yaml:"nkey_file"`
	TLS             ClientTLS `yaml:"tls"`
}

// ClientTLS protects a connection of ours.
type ClientTLS struct {
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Lease is the election's timing.
type Lease struct {
	// Duration a leader may be silent before another takes over. Default 3 s.
	Duration time.Duration `yaml:"duration"`
}

// Telemetry names the service. Exporters are chosen by the standard OTEL_* variables.
type Telemetry struct {
	// Service is the OpenTelemetry service name. Default "partidor-rebalancer".
	Service string `yaml:"service"`
	// LogLevel is debug, info (default), warn or error.
	LogLevel string `yaml:"log_level"`
}

// SetDefaults fills in what the file left out.
func (c *Config) SetDefaults() {
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:9180")
	if c.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "rebalancer"
		}
		c.Instance = fmt.Sprintf("%.40s-%d", host, os.Getpid())
	}
	c.Postgres.MaxConnections = cmp.Or(c.Postgres.MaxConnections, 8)
	c.Lease.Duration = cmp.Or(c.Lease.Duration, 3*time.Second)
	c.Telemetry.Service = cmp.Or(c.Telemetry.Service, "partidor-rebalancer")
	c.Telemetry.LogLevel = cmp.Or(c.Telemetry.LogLevel, "info")
}
