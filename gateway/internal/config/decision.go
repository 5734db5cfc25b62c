package config

import "time"

// Decision is how one request is decided.
type Decision struct {
	// Deadline of one decision; after it the fallback decides. Default 5 ms.
	Deadline time.Duration `yaml:"deadline"`
	// Default is the limit of keys that no rule matches: 20 tokens, 10 per second.
	Default DefaultRule `yaml:"default"`
	Batch   Batch       `yaml:"batch"`
	// Prefetch bounds the tokens taken ahead for rules that allow it.
	Prefetch Prefetch `yaml:"prefetch"`
	// DeniedCache is how long a refusal may be answered from memory, at most 100 ms (default). Negative turns it off.
	DeniedCache time.Duration `yaml:"denied_cache"`
	// LossHorizon: keys that take longer to fill than this start full after a loss of data. Default 10 min.
	LossHorizon time.Duration `yaml:"loss_horizon"`
	Log         DecisionLog   `yaml:"log"`
}

// DecisionLog writes one line of JSON for every decision.
type DecisionLog struct {
	// File is appended to and followed over rotation; "-" is standard output. Default: none is written.
	File string `yaml:"file"`
}

// DefaultRule is the limit that applies where no rule does.
type DefaultRule struct {
	Capacity      int64 `yaml:"capacity"`
	Refill        int64 `yaml:"refill_per_second"`
	PeriodSeconds int64 `yaml:"refill_period_seconds"`
}

// Batch lets concurrent decisions travel together.
type Batch struct {
	// Workers per Redis node. Default 2.
	Workers int `yaml:"workers"`
	// Size bounds the decisions of one call. Default 64.
	Size int `yaml:"size"`
}

// Prefetch bounds the tokens an instance holds ahead.
type Prefetch struct {
	Disabled bool `yaml:"disabled"`
	// MaxTokens per key and instance. Default 50.
	MaxTokens int64 `yaml:"max_tokens"`
	// Horizon of the instance's own rate that one fetch covers. Default 100 ms.
	Horizon time.Duration `yaml:"horizon"`
}

// Fallback decides while Redis is away.
type Fallback struct {
	// Mode is "local" (default): the last confirmed slice; or "strict": always the floor's slice.
	Mode string `yaml:"mode"`
	// Instances in this region, where heartbeats have told nothing yet. Default 1.
	Instances int `yaml:"instances"`
	// MaxBuckets bounds the local limiter's memory. Default 200,000.
	MaxBuckets int             `yaml:"max_buckets"`
	Breaker    DecisionBreaker `yaml:"breaker"`
}

// The fallback modes.
const (
	FallbackLocal  = "local"
	FallbackStrict = "strict"
)

// DecisionBreaker stops asking a Redis node that fails or answers slowly.
type DecisionBreaker struct {
	// FailureRate from 0 to 1 of at least MinCalls within Window opens it. Defaults 0.5 of 20 within 2 s.
	FailureRate float64       `yaml:"failure_rate"`
	MinCalls    int           `yaml:"min_calls"`
	Window      time.Duration `yaml:"window"`
	// Slow is the duration from which an answer counts as a failure. Default: the decision deadline.
	Slow time.Duration `yaml:"slow"`
	// Delay before the first trial, doubled up to MaxDelay, jittered. Defaults 250 ms and 5 s.
	Delay    time.Duration `yaml:"delay"`
	MaxDelay time.Duration `yaml:"max_delay"`
}

// Exchange is how this region moves rights to and from others.
type Exchange struct {
	// FastLoop is "on" (default) or "off": then shares move only by the rebalancer's advice. The parameter fast_loop of the
	// ledger switches it off as well, everywhere and at run time.
	FastLoop string `yaml:"fast_loop"`
	// Floor in parts per million of the base share that never leaves the region. Default 50,000 (5 %).
	Floor int64 `yaml:"floor"`
	// Home is the budget of a decision that a tiny limit's home region makes. Default 150 ms.
	HomeBudget time.Duration `yaml:"home_budget"`
}
