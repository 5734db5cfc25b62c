package config

import "time"

// Upstream is a service behind the gateway: one or more targets that answer alike.
type Upstream struct {
	Targets []Target `yaml:"targets"`
	// Balance is "round_robin" (default), weighted where weights are given, or "least_loaded".
	Balance string  `yaml:"balance"`
	Health  Health  `yaml:"health"`
	Breaker Breaker `yaml:"breaker"`
	// Protocol towards the targets: "http1" (default), "h2" (over TLS) or "h2c".
	Protocol string    `yaml:"protocol"`
	TLS      ClientTLS `yaml:"tls"`
	// ConnectTimeout bounds a new connection, handshake included. Default 2 s.
	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	// IdleConnections kept per target. Default 256.
	IdleConnections int `yaml:"idle_connections"`
	// IdleTimeout closes connections that nobody has used for so long. It must be shorter than the targets' own: else a target
	// closes one just as a request is sent on it, which ends as 502 wherever it cannot be repeated. Default 60 s.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// MaxConnections per target; 0 means no bound.
	MaxConnections int `yaml:"max_connections"`
}

// Target is one address of an upstream.
type Target struct {
	// URL is scheme, host and, where wanted, a path prefix.
	URL string `yaml:"url"`
	// Weight of the target among its peers. Default 1.
	Weight int `yaml:"weight"`
}

// Health asks targets whether they live. Without a path no target is asked, and all count as healthy.
type Health struct {
	Path string `yaml:"path"`
	// Interval between two questions to one target. Default 5 s.
	Interval time.Duration `yaml:"interval"`
	// Timeout of one question. Default 1 s.
	Timeout time.Duration `yaml:"timeout"`
	// Unhealthy failures in a row take a target out, Healthy successes bring it back. Defaults 3 and 2.
	Unhealthy int `yaml:"unhealthy"`
	Healthy   int `yaml:"healthy"`
}

// Breaker stops sending to a target that fails. It counts connection errors, timeouts and the statuses 502 to 504, never
// clients that leave.
type Breaker struct {
	Disabled bool `yaml:"disabled"`
	// Failures among Window requests open it. Defaults 10 of 20.
	Failures int `yaml:"failures"`
	Window   int `yaml:"window"`
	// Delay before a trial request. Default 5 s.
	Delay time.Duration `yaml:"delay"`
}

// The balancing methods and upstream protocols.
const (
	BalanceRoundRobin  = "round_robin"
	BalanceLeastLoaded = "least_loaded"
	ProtocolHTTP1      = "http1"
	ProtocolH2         = "h2"
	ProtocolH2C        = "h2c"
)
