package app

import (
	"bytes"
	"context"
	"os"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot"
	"partidor.dev/partidor/gateway/internal/watch"
)

// follow reloads the configuration's file when it has changed, and when a signal asks. A file that is wrong changes
// nothing. Sections that take effect at the next start only are named in the log.
func (g *gateway) follow(ctx context.Context) {
	file := g.options.ConfigFile
	if file == "" {
		return
	}
	last, err := os.ReadFile(file)
	if err != nil {
		g.logger.WarnContext(ctx, "configuration cannot be followed", "error", err)
	}
	looks := make(chan bool) // true: whether it has changed or not.
	g.background.start(ctx, "configuration", func(ctx context.Context) error {
		return watch.File(ctx, file, func() {
			select {
			case looks <- false:
			case <-ctx.Done():
			}
		}, g.logger)
	})
	g.background.start(ctx, "reload", func(ctx context.Context) error {
		for {
			asked := false
			select {
			case <-ctx.Done():
				return nil
			case asked = <-looks:
			case <-g.options.Hangup:
				asked = true
			}
			data, err := os.ReadFile(file)
			switch {
			case err != nil:
				g.logger.WarnContext(ctx, "configuration not reloaded", "error", err)
			case asked || !bytes.Equal(data, last):
				last = data
				g.reload(ctx, file, data)
			}
		}
	})
}

func (g *gateway) reload(ctx context.Context, file string, data []byte) {
	next, err := config.Parse(file, data, hot.Check)
	if err == nil {
		err = g.handler.Reload(next)
	}
	if err != nil {
		g.logger.ErrorContext(ctx, "configuration refused, the one before stays", "error", err)
		return
	}
	g.logger.InfoContext(ctx, "configuration reloaded", "routes", len(next.Routes), "upstreams", len(next.Upstreams))
	if sections := config.NeedsRestart(g.config, next); len(sections) > 0 {
		g.logger.WarnContext(ctx, "sections take effect at the next start", "sections", sections)
	}
}
