package app

import (
	"context"
	"sync"
	"time"

	"partidor.dev/partidor/lua"
)

// warmWithin bounds the wait for Redis before the first request.
const warmWithin = 2 * time.Second

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
	return nil
}
