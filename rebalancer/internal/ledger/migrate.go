package ledger

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migration is one numbered step of the schema and whether the database has it.
type Migration struct {
	Version int64
	File    string
	Applied bool
}

// Migrator changes the schema of one database. It takes PostgreSQL's advisory lock, so several may be started at once.
type Migrator struct {
	db       *sql.DB
	provider *goose.Provider
}

// NewMigrator opens url. Close it after use.
func NewMigrator(url string) (*Migrator, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("migrate: database url: %w", err)
	}
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, fmt.Errorf("migrate: embedded files: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("migrate: lock: %w", err)
	}
	db := stdlib.OpenDB(*config)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return &Migrator{db: db, provider: provider}, nil
}

// Close ends the connection.
func (m *Migrator) Close() error { return m.db.Close() }

// Up applies every step the database lacks and returns those.
func (m *Migrator) Up(ctx context.Context) ([]Migration, error) {
	return steps(m.provider.Up(ctx))
}

// Down takes the newest applied step back.
func (m *Migrator) Down(ctx context.Context) ([]Migration, error) {
	result, err := m.provider.Down(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate down: %w", err)
	}
	return steps([]*goose.MigrationResult{result}, nil)
}

// DownTo takes back every step above version.
func (m *Migrator) DownTo(ctx context.Context, version int64) ([]Migration, error) {
	return steps(m.provider.DownTo(ctx, version))
}

// Status lists all steps.
func (m *Migrator) Status(ctx context.Context) ([]Migration, error) {
	status, err := m.provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate status: %w", err)
	}
	list := make([]Migration, len(status))
	for i, s := range status {
		list[i] = Migration{Version: s.Source.Version, File: s.Source.Path, Applied: s.State == goose.StateApplied}
	}
	return list, nil
}

// Pending tells whether the database lacks a step that this program knows.
func (m *Migrator) Pending(ctx context.Context) (bool, error) {
	pending, err := m.provider.HasPending(ctx)
	if err != nil {
		return false, fmt.Errorf("migrate status: %w", err)
	}
	return pending, nil
}

func steps(results []*goose.MigrationResult, err error) ([]Migration, error) {
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	list := make([]Migration, 0, len(results))
	for _, r := range results {
		list = append(list, Migration{Version: r.Source.Version, File: r.Source.Path, Applied: r.Direction == "up"})
	}
	return list, nil
}
