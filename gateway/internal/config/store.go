package config

import "time"

// Redis is this region's Redis: a single server, a Sentinel group or a cluster.
type Redis struct {
	// Addresses of the server, of the Sentinels (with Master) or of some cluster nodes (with Cluster). Default
	// 127.0.0.1:6379.
	Addresses []string `yaml:"addresses"`
	// Master is the name of the Sentinel group.
	Master string `yaml:"master"`
	// Cluster speaks the cluster protocol.
	Cluster  bool   `yaml:"cluster"`
	DB       int    `yaml:"db"`
	Username string `yaml:"username"`
	// PasswordFile or PasswordEnv holds the password.
	PasswordFile string    `yaml:"password_file"`
	PasswordEnv  string    `yaml:"password_env"`
	TLS          ClientTLS `yaml:"tls"`
	// PoolSize bounds the connections per node. Default 16.
	PoolSize int `yaml:"pool_size"`
	// DialTimeout bounds a new connection. Default 1 s; it never makes a request wait longer than its deadline.
	DialTimeout time.Duration `yaml:"dial_timeout"`
}

// NATS joins the regions and the rebalancer. Without URLs the gateway runs alone: its shares never move.
type NATS struct {
	URLs []string `yaml:"urls"`
	// CredentialsFile is a NATS credentials file; or NKeyFile a seed.
	CredentialsFile string    `yaml:"credentials_file"`
	NKeyFile        string    `yaml:"nkey_file"`
	TLS             ClientTLS `yaml:"tls"`
}

// Enabled tells whether there is a NATS to speak to.
func (n NATS) Enabled() bool { return len(n.URLs) > 0 }

// Postgres is the ledger. It is read in the background only.
type Postgres struct {
	// URL of the database; a password in it is accepted only through URLFile or URLEnv.
	URL     string `yaml:"url"`
	URLFile string `yaml:"url_file"`
	URLEnv  string `yaml:"url_env"`
	// Poll is the interval between two looks for newer revisions. Default 30 s.
	Poll time.Duration `yaml:"poll"`
	// MaxConnections of the pool. Default 4.
	MaxConnections int `yaml:"max_connections"`
}

// Enabled tells whether the ledger is a database.
func (p Postgres) Enabled() bool { return p.URL != "" || p.URLFile != "" || p.URLEnv != "" }

// RulesField is the field that names where the rules come from.
func (c *Config) RulesField() string {
	switch {
	case c.Rules.File != "":
		return "rules.file"
	case c.Postgres.URLFile != "":
		return "postgres.url_file"
	case c.Postgres.URLEnv != "":
		return "postgres.url_env"
	}
	return "postgres.url"
}

// Rules come from a watched file instead of the database.
type Rules struct {
	File string `yaml:"file"`
}

// Snapshot is the last good state on disk, used when the database is away at start.
type Snapshot struct {
	// File defaults to none: without it a gateway whose database is away at start is not ready.
	File string `yaml:"file"`
	// Interval bounds how often it is written. Default 30 s.
	Interval time.Duration `yaml:"interval"`
}
