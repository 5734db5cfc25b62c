package app

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"partidor.dev/partidor/gateway/internal/certs"
	"partidor.dev/partidor/gateway/internal/hot"
	"partidor.dev/partidor/gateway/internal/hot/decisionlog"
	"partidor.dev/partidor/gateway/internal/hot/identify"
)

func (g *gateway) buildHandler(ctx context.Context) (err error) {
	decides, err := g.logged(ctx)
	if err != nil {
		return err
	}
	g.handler, err = hot.New(hot.Options{
		Config: g.config, Admitter: decides,
		Tenants: func() identify.Tenants { return g.holder.Load() },
		Ready:   func() bool { return len(g.holder.Load().Regions()) > 0 },
		Logger:  g.logger, Tracer: g.tracer, Meter: g.meter,
	})
	if err != nil {
		return err
	}
	g.onClose(g.handler.Close)
	g.follow(ctx)
	return nil
}

// logged is what decides, with a log of its decisions where one is configured.
func (g *gateway) logged(ctx context.Context) (hot.Admitter, error) {
	file := g.config.Decision.Log.File
	if file == "" {
		return g.admitter, nil
	}
	l, err := decisionlog.Open(decisionlog.Options{
		File: file, Region: g.config.Region, Instance: g.config.Instance, Next: g.admitter, Logger: g.logger, Meter: g.meter,
	})
	if err != nil {
		return nil, err
	}
	g.background.start(ctx, "decision log", l.Run)
	return l, nil
}

// server is the data port's. Request contexts do not end with the gateway's own: requests in flight may finish.
func (g *gateway) server(l net.Listener) (*http.Server, net.Listener, error) {
	secure, err := certs.Server(g.config.TLS, g.logger)
	if err != nil {
		return nil, nil, fmt.Errorf("tls: %w", err)
	}
	return hot.NewServer(g.config, g.leaving(g.handler), secure, g.logger), hot.Listen(g.config, &acceptor{Listener: l, logger: g.logger}, secure), nil
}

// serve answers requests until ctx ends or the listener fails, then drains.
func (g *gateway) serve(ctx context.Context) error {
	s, l, err := g.server(g.data)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	g.serving.Store(true)
	g.logger.InfoContext(ctx, "serving", "listen", g.data.Addr().String(), "admin", g.admin.Addr().String(),
		"source", g.loader.Status().Source, "revision", g.loader.Status().Revision)
	if g.options.Serving != nil {
		g.options.Serving(g.data.Addr(), g.admin.Addr())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("data port: %w", err)
	case <-ctx.Done():
	}
	err = g.drain(context.WithoutCancel(ctx), s)
	<-failed //nolint:errcheck // why it ended is no news: it was asked to
	return err
}
