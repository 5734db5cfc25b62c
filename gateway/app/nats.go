package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/gateway/internal/certs"
	sharedconfig "partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/wire"
)

const (
	natsReconnect = 500 * time.Millisecond
	// natsPing and natsMaxPings find a connection that is open but dead.
	natsPing     = 5 * time.Second
	natsMaxPings = 2
	// natsBuffer bounds what waits while the connection is away. What we send is cumulative, so little of it is worth keeping.
	natsBuffer = 256 << 10
	// slowLogEvery bounds the log lines about a subscription that falls behind.
	slowLogEvery = time.Minute
)

// connect joins NATS where there is one. It does not wait: a gateway starts and serves without NATS.
func (g *gateway) connect(ctx context.Context) error {
	n := &g.config.NATS
	if !n.Enabled() && len(g.options.NATS) == 0 {
		return nil
	}
	opts, err := g.natsOptions(ctx)
	if err != nil {
		return err
	}
	o := nats.GetDefaultOptions()
	o.Servers = n.URLs
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return fmt.Errorf("nats: %w", err)
		}
	}
	if g.nats, err = o.Connect(); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	if err := g.observeNATS(); err != nil {
		return err
	}
	g.onClose(func() {
		_ = g.nats.FlushTimeout(time.Second) // the last reports
		g.nats.Close()
	})
	if g.listener == nil {
		return nil
	}
	if _, err := g.nats.Subscribe(wire.SubjectChanged, g.changed); err != nil {
		return fmt.Errorf("subscribe to changes: %w", err)
	}
	return nil
}

func (g *gateway) observeNATS() error {
	_, err := g.meter.Int64ObservableGauge("partidor.nats.connected", metric.WithUnit("{connection}"),
		metric.WithDescription("1 while connected to NATS: without it a gateway hears of no transfers, advice or changes."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			connected := int64(0)
			if g.nats.IsConnected() {
				connected = 1
			}
			o.Observe(connected)
			return nil
		}))
	return err
}

func (g *gateway) natsOptions(ctx context.Context) ([]nats.Option, error) {
	n := &g.config.NATS
	slow, err := g.meter.Int64Counter("partidor.nats.slow_consumer", metric.WithUnit("{event}"),
		metric.WithDescription("Times a subscription fell behind and messages were dropped."))
	if err != nil {
		return nil, err
	}
	slow.Add(ctx, 0)
	var lastSlow time.Time // the client calls its handlers one at a time
	opts := []nats.Option{
		nats.Name("partidor-gateway " + g.config.Region + " " + g.config.Instance),
		nats.CustomInboxPrefix(wire.InboxPrefix(g.config.Region)),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(int) time.Duration { return natsReconnect + rand.N(natsReconnect) }),
		nats.PingInterval(natsPing),
		nats.MaxPingsOutstanding(natsMaxPings),
		nats.ReconnectBufSize(natsBuffer),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if !g.draining.Load() {
				g.logger.Warn("nats is away: shares stay as they are, requests go on", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			g.logger.Info("nats is back")
			g.loader.Look() // announcements may have been missed
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) {
				slow.Add(ctx, 1)
				if time.Since(lastSlow) < slowLogEvery {
					return
				}
				lastSlow = time.Now()
			}
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			g.logger.Warn("nats", "subject", subject, "error", err)
		}),
	}
	if n.CredentialsFile != "" {
		opts = append(opts, nats.UserCredentials(n.CredentialsFile))
	}
	if n.NKeyFile != "" {
		key, err := nats.NkeyOptionFromSeed(n.NKeyFile)
		if err != nil {
			return nil, &sharedconfig.Fault{Field: "nats.nkey_file", Err: err}
		}
		opts = append(opts, key)
	}
	if t := n.TLS; t.Enabled || t.CAFile != "" || t.CertFile != "" {
		secure, err := certs.Client(t, g.logger)
		if err != nil {
			return nil, &sharedconfig.Fault{Field: "nats.tls", Err: err}
		}
		opts = append(opts, nats.Secure(secure()))
		if t.CAFile != "" { // Read for every connection, as the file may have changed.
			opts = append(opts, func(o *nats.Options) error {
				o.RootCAsCB = func() (*x509.CertPool, error) { return secure().RootCAs, nil }
				return nil
			})
		}
	}
	return append(opts, g.options.NATS...), nil
}
