package config

import (
	"time"

	"partidor.dev/partidor/shared/config"
)

// Config is the whole file. Its zero value, completed by SetDefaults, is a gateway without routes.
type Config struct {
	// Listen is the address of the data port.
	Listen string `yaml:"listen"`
	Server Server `yaml:"server"`
	TLS    TLS    `yaml:"tls"`
	Admin  Admin  `yaml:"admin"`

	// Region is where this instance runs. It is a name of the deployment's regions.
	Region string `yaml:"region"`
	// Instance names this process in reports and logs. Default: the host's name and the process id.
	Instance string `yaml:"instance"`

	Identity  Identity            `yaml:"identity"`
	Addresses Addresses           `yaml:"addresses"`
	CORS      CORS                `yaml:"cors"`
	Upstreams map[string]Upstream `yaml:"upstreams"`
	Routes    []Route             `yaml:"routes"`

	// Store says where buckets live: "redis" (default) or "memory" for a single instance without Redis.
	Store    string   `yaml:"store"`
	Redis    Redis    `yaml:"redis"`
	NATS     NATS     `yaml:"nats"`
	Postgres Postgres `yaml:"postgres"`
	Rules    Rules    `yaml:"rules"`
	Snapshot Snapshot `yaml:"snapshot"`

	Decision  Decision  `yaml:"decision"`
	Fallback  Fallback  `yaml:"fallback"`
	Exchange  Exchange  `yaml:"exchange"`
	Usage     Usage     `yaml:"usage"`
	Telemetry Telemetry `yaml:"telemetry"`

	document *config.Document // what it was read from
}

// The stores of buckets.
const (
	StoreRedis  = "redis"
	StoreMemory = "memory"
)

// Usage says how often an instance speaks over NATS.
type Usage struct {
	// Interval between usage reports. Default 2 s.
	Interval time.Duration `yaml:"interval"`
	// Heartbeat is the interval between heartbeats. Default 1 s.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// MaxKeys bounds the keys counted at once; more are counted as dropped. Default 200,000.
	MaxKeys int `yaml:"max_keys"`
}

// Telemetry names the service. Exporters are chosen by the standard OTEL_* variables.
type Telemetry struct {
	// Service is the OpenTelemetry service name. Default "partidor-gateway".
	Service string `yaml:"service"`
	// LogLevel is debug, info (default), warn or error.
	LogLevel string `yaml:"log_level"`
	// Tenants, at most 100, have series of their own in the metrics; all others are only counted together.
	Tenants []string `yaml:"tenants"`
}
