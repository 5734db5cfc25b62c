package testenv_test

import (
	"context"
	"testing"
	"time"

	"partidor.dev/partidor/shared/testenv"
)

func TestRedisLosesItsDataOnlyWithoutPersistence(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []testenv.RedisOption
		want int64
	}{
		{"without persistence", nil, 0},
		{"append only", []testenv.RedisOption{testenv.RedisAppendOnly()}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			r := testenv.StartRedis(t, tc.opts...)
			if err := r.Client().Set(ctx, "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			r.Kill()
			r.Restart()
			got, err := r.Client().Exists(ctx, "k").Result()
			if err != nil || got != tc.want {
				t.Fatalf("EXISTS after a crash: %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}

func TestPostgresGivesEachTestItsOwnDatabase(t *testing.T) {
	ctx := context.Background()
	for range 2 {
		conn := testenv.StartPostgres(t).Conn(t)
		if _, err := conn.Exec(ctx, "CREATE TABLE same_name (n int)"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPostgresServerOfItsOwnKeepsDataOverRestart(t *testing.T) {
	ctx := context.Background()
	s := testenv.StartPostgresServer(t)
	db := s.Database(t)
	if _, err := db.Conn(t).Exec(ctx, "CREATE TABLE kept (n int)"); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	if _, err := db.Conn(t).Exec(ctx, "SELECT n FROM kept"); err != nil {
		t.Fatal(err)
	}
}

func TestProgramIsHeardAndEnded(t *testing.T) {
	p := testenv.StartProgram(t, []string{"sh", "-c", `echo "hello $NAME"; read -r never; exit 3`}, "NAME=you")
	p.AwaitLine(10*time.Second, func(line []byte) bool { return string(line) == "hello you" })
	if status := p.Wait(10 * time.Second); status != 3 { // its input is empty, so read ends at once
		t.Fatalf("exit status %d\n%s", status, p.Output())
	}
}
