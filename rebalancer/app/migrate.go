package app

import (
	"context"
	"errors"
	"fmt"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	sharedconfig "partidor.dev/partidor/shared/config"
)

// Migration changes the schema of one ledger.
type Migration struct{ migrator *ledger.Migrator }

// Steps is what was done, a line for each, or why not.
type Steps struct {
	List []string
	Err  error
}

// OpenMigration opens the database at url or, if that is empty, the one that the configuration at path names. Close it
// after use.
func OpenMigration(path, url string) (*Migration, error) {
	if url == "" {
		o := Options{ConfigFile: path}
		c, err := o.load()
		if err != nil {
			return nil, err
		}
		if !c.Postgres.Enabled() {
			return nil, errors.New("migrate: the configuration names no database")
		}
		if url = c.Postgres.URL; url == "" {
			if url, err = sharedconfig.Secret("postgres.url", c.Postgres.URLFile, c.Postgres.URLEnv); err != nil {
				return nil, err
			}
		}
	}
	m, err := ledger.NewMigrator(url)
	if err != nil {
		return nil, err
	}
	return &Migration{m}, nil
}

// Close ends the connection.
func (m *Migration) Close() error { return m.migrator.Close() }

// Up applies all missing steps.
func (m *Migration) Up(ctx context.Context) Steps { return stepsOf(m.migrator.Up(ctx)) }

// Down takes the newest step back.
func (m *Migration) Down(ctx context.Context) Steps { return stepsOf(m.migrator.Down(ctx)) }

// Status lists all steps.
func (m *Migration) Status(ctx context.Context) Steps { return stepsOf(m.migrator.Status(ctx)) }

func stepsOf(list []ledger.Migration, err error) Steps {
	s := Steps{Err: err}
	for _, m := range list {
		state := "not applied"
		if m.Applied {
			state = "applied"
		}
		s.List = append(s.List, fmt.Sprintf("%-32s %s", m.File, state))
	}
	return s
}
