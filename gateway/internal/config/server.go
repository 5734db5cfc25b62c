package config

import "time"

// Server bounds what one client connection may cost. Zero values take the defaults named here.
type Server struct {
	// ReadHeaderTimeout bounds the time a client may take for its request's head. Default 10 s.
	ReadHeaderTimeout time.Duration `yaml:"read_header_timeout"`
	// BodyTimeout bounds the silence between two pieces of a request's body, until the upstream answers and except in calls of
	// gRPC, and how long a client may take no byte of its answer while there is one to send. Default 60 s.
	BodyTimeout time.Duration `yaml:"body_timeout"`
	// IdleTimeout closes a kept-alive connection on which nothing happens. Default 120 s.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// MaxHeaderBytes bounds a request's head. Default 64 KiB.
	MaxHeaderBytes int `yaml:"max_header_bytes"`
	// MaxConcurrentStreams bounds the requests in flight on one HTTP/2 connection. Default 250.
	MaxConcurrentStreams int `yaml:"max_concurrent_streams"`
	// H2C accepts HTTP/2 without TLS (prior knowledge), as gRPC inside a cluster uses it.
	H2C bool `yaml:"h2c"`
	// UnderscoreHeaders lists request headers that are kept although their names hold an underscore; all others are
	// dropped, since some servers read X_Tenant_Id as X-Tenant-Id.
	UnderscoreHeaders []string `yaml:"underscore_headers"`
	// PassHeaders lists request headers that reach upstreams as clients sent them although they speak of the client, its
	// connection or another method or path, such as X-Forwarded-Port behind a proxy that always sets it. All others of that
	// kind are dropped.
	PassHeaders []string `yaml:"pass_headers"`
	// DrainDelay is how long readiness says no before listeners close, so that balancers stop sending. Default 0.
	DrainDelay time.Duration `yaml:"drain_delay"`
	// DrainTimeout bounds the wait for requests in flight at shutdown. Default 30 s.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
}

// TLS of the data port. Without a certificate the port speaks plain HTTP.
type TLS struct {
	// CertFile and KeyFile are PEM files, read again when they change.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// MinVersion is "1.2" (default) or "1.3".
	MinVersion string `yaml:"min_version"`
	// ClientCAFile, where given, asks every client for a certificate signed by one of these authorities.
	ClientCAFile string `yaml:"client_ca_file"`
}

// Enabled tells whether the port speaks TLS.
func (t TLS) Enabled() bool { return t.CertFile != "" || t.KeyFile != "" }

// ClientTLS is how a connection to another server is secured.
type ClientTLS struct {
	// Enabled turns TLS on where the address itself does not say so.
	Enabled bool `yaml:"enabled"`
	// CAFile replaces the system's authorities.
	CAFile string `yaml:"ca_file"`
	// CertFile and KeyFile are this side's own certificate, for mutual TLS.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName replaces the name that the server's certificate must carry.
	ServerName string `yaml:"server_name"`
	MinVersion string `yaml:"min_version"`
}

// Admin is the port of health, metrics and profiling, apart from the data port.
type Admin struct {
	// Listen defaults to 127.0.0.1:9090. An address that is not loopback needs a token.
	Listen string `yaml:"listen"`
	// TokenFile or TokenEnv holds the bearer token that requests to a non-loopback address must carry. Health checks
	// need none.
	TokenFile string `yaml:"token_file"`
	TokenEnv  string `yaml:"token_env"`
}
