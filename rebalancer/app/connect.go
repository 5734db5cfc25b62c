package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/rebalancer/internal/api"
	"partidor.dev/partidor/rebalancer/internal/config"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	sharedconfig "partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/telemetry"
)

// connectNATS returns at once and connects in the background for as long as it takes.
func connectNATS(c *config.Config, log *slog.Logger, extra []nats.Option) (*nats.Conn, error) {
	o := []nats.Option{
		nats.Name("partidor-rebalancer " + c.Instance),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { log.Warn("NATS lost", "error", err) }),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("NATS is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			log.Warn("NATS", "subject", subject, "error", err)
		}),
	}
	if f := c.NATS.CredentialsFile; f != "" {
		o = append(o, nats.UserCredentials(f))
	}
	if f := c.NATS.NKeyFile; f != "" {
		key, err := nats.NkeyOptionFromSeed(f)
		if err != nil {
			return nil, fmt.Errorf("nats.nkey_file: %w", err)
		}
		o = append(o, key)
	}
	if f := c.NATS.TLS.CAFile; f != "" {
		o = append(o, nats.RootCAs(f))
	}
	if f := c.NATS.TLS.CertFile; f != "" {
		o = append(o, nats.ClientCert(f, c.NATS.TLS.KeyFile))
	}
	conn, err := nats.Connect(strings.Join(c.NATS.URLs, ","), append(o, extra...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return conn, nil
}

func openPostgres(ctx context.Context, c *config.Config, t *telemetry.Telemetry) (*ledger.Postgres, error) {
	url := c.Postgres.URL
	if url == "" {
		var err error
		if url, err = sharedconfig.Secret("postgres.url", c.Postgres.URLFile, c.Postgres.URLEnv); err != nil {
			return nil, err
		}
	}
	if c.Postgres.Migrate {
		m, err := ledger.NewMigrator(url)
		if err != nil {
			return nil, err
		}
		done, err := m.Up(ctx)
		m.Close() //nolint:errcheck // nothing is left to be written
		if err != nil {
			return nil, err
		}
		for _, step := range done {
			t.Logger.Info("migrated", "version", step.Version, "file", step.File)
		}
	}
	return ledger.Open(ctx, url, c.Postgres.MaxConnections, t.TracerProvider, t.MeterProvider)
}

// access reads the tokens' secrets and keeps only their digests.
func access(c *config.Config) (api.Access, error) {
	roles := map[string]api.Role{"": api.Nobody, config.RoleViewer: api.Viewer, config.RoleOperator: api.Operator}
	a := api.Access{Anonymous: roles[c.Access.Anonymous]}
	for i, t := range c.Access.Tokens {
		token := api.Token{Name: t.Name, Role: roles[t.Role]}
		if t.SHA256 != "" {
			_, _ = hex.Decode(token.Hash[:], []byte(t.SHA256)) // Validate has seen it
		} else {
			secret, err := sharedconfig.Secret(fmt.Sprintf("access.tokens[%d].token", i), t.TokenFile, t.TokenEnv)
			if err != nil {
				return api.Access{}, err
			}
			token.Hash = sha256.Sum256([]byte(secret))
		}
		a.Tokens = append(a.Tokens, token)
	}
	return a, nil
}
