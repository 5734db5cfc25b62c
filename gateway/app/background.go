package app

import (
	"context"
	"log/slog"
	"time"
)

// background holds the parts that work while requests are served. Each has its own goroutine and its own end; stop ends
// them in the reverse order of their start, so that each may rely on those before it.
type background struct {
	logger *slog.Logger
	parts  []part
}

type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

// start runs a part until stop. ctx gives its values, not its end. A part that fails is told: requests go on without it.
func (b *background) start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := part{name, cancel, make(chan struct{})}
	b.parts = append(b.parts, p)
	go func() {
		defer close(p.done)
		if err := run(ctx); err != nil {
			b.logger.ErrorContext(ctx, "part of the gateway has stopped", "part", name, "error", err)
		}
	}()
}

// stop ends every part, giving each at most so much time.
func (b *background) stop(each time.Duration) {
	for i := len(b.parts) - 1; i >= 0; i-- {
		p := b.parts[i]
		p.cancel()
		timer := time.NewTimer(each)
		select {
		case <-p.done:
		case <-timer.C:
			b.logger.Error("part of the gateway does not stop, going on without it", "part", p.name)
		}
		timer.Stop()
	}
	b.parts = nil
}
