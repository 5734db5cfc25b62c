package app

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"partidor.dev/partidor/lua"
	"partidor.dev/partidor/shared/bucket/redisconn"
)

const (
	// warmWithin bounds the wait for Redis before the first request.
	warmWithin = 2 * time.Second
	// checkEvery is how often a Redis that cannot be reached is looked for in order to check it.
	checkEvery = 10 * time.Second
)

// warm opens connections to Redis and has it compile the script. The first requests would otherwise pay for both, miss
// their deadline and be decided without Redis. A Redis that is away is no reason to wait longer.
func (g *gateway) warm(ctx context.Context) error {
	if g.redis == nil {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, g.config.Decision.Batch.Workers)
	for i := range errs {
		wg.Go(func() {
			if errs[i] = g.redis.Ping(within).Err(); errs[i] == nil {
				_ = g.redis.ScriptLoad(within, lua.Take).Err() // not every user may; then EVAL does it
			}
		})
	}
	wg.Wait()
	if errs[0] != nil {
		g.logger.WarnContext(ctx, "redis is away, the local limiter decides until it comes", "error", errs[0])
	}
	g.background.start(ctx, "redis check", g.checkServer)
	return nil
}

// checkServer says once what is wrong with the Redis that was configured, as soon as it can be asked.
func (g *gateway) checkServer(ctx context.Context) error {
	for {
		within, cancel := context.WithTimeout(ctx, warmWithin)
		warnings, err := redisconn.Check(within, g.redis)
		cancel()
		for _, w := range warnings {
			g.logger.WarnContext(ctx, "redis works, but not as promised", "warning", w)
		}
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !unreachable(err) {
			g.logger.ErrorContext(ctx, "redis cannot hold buckets, the local limiter decides", "error", err)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(checkEvery):
		}
	}
}

// unreachable tells a server that did not answer from one that answered badly.
func unreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}
