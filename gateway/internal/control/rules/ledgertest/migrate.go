// Package ledgertest gives tests of the gateway a database with the ledger's own schema. The gateway never imports the
// rebalancer: they meet in SQL, so the migrations are read as files of the repository.
package ledgertest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Migrate runs every migration's Up part in the database of conn.
func Migrate(tb testing.TB, conn *pgx.Conn) {
	tb.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("own path unknown: built with -trimpath?")
	}
	root := here
	for range 6 { // gateway/internal/control/rules/ledgertest/migrate.go
		root = filepath.Dir(root)
	}
	files, err := filepath.Glob(filepath.Join(root, "rebalancer", "internal", "ledger", "migrations", "*.sql"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no migrations found below %s: %v", root, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		_, up, _ := strings.Cut(string(text), "-- +goose Up")
		up, _, _ = strings.Cut(up, "-- +goose Down")
		if err := conn.PgConn().Exec(tb.Context(), up).Close(); err != nil {
			tb.Fatalf("%s: %v", filepath.Base(file), err)
		}
	}
}
