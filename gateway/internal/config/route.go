package config

import "time"

// Route is one named way through the gateway. Its id is the route of every key and the name of its policy.
type Route struct {
	ID string `yaml:"id"`
	// Hosts the route answers for, without port, without regard to case; empty means every host.
	Hosts []string `yaml:"hosts"`
	// Methods the route answers for; empty means every method. GET includes HEAD.
	Methods []string `yaml:"methods"`
	// Path is a pattern in net/http.ServeMux's syntax: /v1/items, /v1/items/{id}, /files/{path...}, /tree/, /{$}.
	Path string `yaml:"path"`
	// Default makes the route the answer for requests that no other matches. It has no path.
	Default bool `yaml:"default"`
	// CaseInsensitive matches the path without regard to ASCII case.
	CaseInsensitive bool `yaml:"case_insensitive"`
	// Allow lists ambiguous encodings that are otherwise 400: encoded_slash, encoded_backslash, encoded_dots, control_bytes,
	// path_parameters, not_utf8.
	Allow []string `yaml:"allow"`

	// Upstream is a name under upstreams.
	Upstream string `yaml:"upstream"`
	// Cost in tokens of one request. Default 1; 0 is free and asks no bucket.
	Cost *int64 `yaml:"cost"`
	// Anonymous serves callers without a credential and limits them by client address.
	Anonymous bool `yaml:"anonymous"`
	// Unlimited routes take no token and say nothing of limits.
	Unlimited bool `yaml:"unlimited"`

	Timeouts Timeouts `yaml:"timeouts"`
	// MaxBodyBytes bounds a request's body; 0 means no bound.
	MaxBodyBytes int64 `yaml:"max_body_bytes"`
	// MaxConcurrent bounds the requests of the route in flight on this instance; more are shed with 503. 0: no bound.
	MaxConcurrent int `yaml:"max_concurrent"`
	// MaxConcurrentPerTenant bounds those of one tenant. 0: no bound.
	MaxConcurrentPerTenant int `yaml:"max_concurrent_per_tenant"`

	// Upgrades lists the protocols that clients may switch to. Default: websocket. Any other, such as h2c, is dropped from
	// the request: a connection that was switched is a tunnel past every route and limit.
	Upgrades []string `yaml:"upgrades"`

	Rewrite         Rewrite      `yaml:"rewrite"`
	RequestHeaders  HeaderEdit   `yaml:"request_headers"`
	ResponseHeaders HeaderEdit   `yaml:"response_headers"`
	Retry           Retry        `yaml:"retry"`
	GRPC            GRPC         `yaml:"grpc"`
	Bodies          map[int]Body `yaml:"bodies"`
}

// Timeouts of one route's upstream requests.
type Timeouts struct {
	// Response bounds the wait for the upstream's headers. Default 30 s.
	Response time.Duration `yaml:"response"`
	// Total bounds the whole exchange, bodies included; 0 means no bound, as streams need.
	Total time.Duration `yaml:"total"`
}

// Rewrite changes the path that the upstream sees. Limits are keyed by the route id, so a rewrite changes no bucket.
type Rewrite struct {
	// StripPrefix is removed from the front of the path, on segment boundaries.
	StripPrefix string `yaml:"strip_prefix"`
	// AddPrefix is put in front of what is left.
	AddPrefix string `yaml:"add_prefix"`
	// Path replaces the path; {name} stands for the wildcard's value in the pattern.
	Path string `yaml:"path"`
	// Host replaces the Host header. Default: the client's is kept.
	Host string `yaml:"host"`
}

// HeaderEdit adds, sets and removes headers, in the order remove, set, add.
type HeaderEdit struct {
	Remove []string          `yaml:"remove"`
	Set    map[string]string `yaml:"set"`
	Add    map[string]string `yaml:"add"`
}

// Retry repeats a request that an upstream could not have worked on, or may work on twice: idempotent methods without a
// body. All attempts cost one token.
type Retry struct {
	// Attempts in all, including the first. Default 1: none is repeated.
	Attempts int `yaml:"attempts"`
	// On lists the statuses that are repeated beside connection errors. Default 502, 503, 504.
	On []int `yaml:"on"`
	// Delay before the second attempt, doubled and jittered after. Default 25 ms.
	Delay time.Duration `yaml:"delay"`
	// Budget is the part of an upstream's requests that may be repeats, from 0 to 1. Default 0.2.
	Budget float64 `yaml:"budget"`
}

// GRPC options of a route. Callers are known by their content type.
type GRPC struct {
	// LimitedStatus is the code of a refusal. Default 8, RESOURCE_EXHAUSTED.
	LimitedStatus int `yaml:"limited_status"`
}

// Body replaces the gateway's own body for one status.
type Body struct {
	ContentType string `yaml:"content_type"`
	// Text is sent as it is; {policy}, {retry_after} and {status} are filled in.
	Text string `yaml:"text"`
}

// CostOrDefault is the tokens one request takes.
func (r *Route) CostOrDefault() int64 {
	if r.Cost == nil {
		return 1
	}
	return *r.Cost
}
