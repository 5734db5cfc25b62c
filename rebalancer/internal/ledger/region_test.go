package ledger

import (
	"errors"
	"testing"

	"partidor.dev/partidor/shared/limit"
)

func TestPublishIsFencedAndOptimistic(t *testing.T) {
	pg, db := opened(t)
	term := lead(t, pg, "x")
	exec(t, db, `UPDATE region SET base_share = CASE name WHEN 'eu' THEN 500000 ELSE 500000 END`)
	seen, err := pg.Regions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pg.Publish(t.Context(), term-1, "x", seen, map[string]limit.Share{"eu": 500_000}); !errors.Is(err, ErrFenced) {
		t.Errorf("published in a term that is over: %v", err)
	}
	if err := pg.Publish(t.Context(), term, "x", seen, map[string]limit.Share{"eu": 500_000}); err != nil {
		t.Fatal(err)
	}
	if err := pg.Publish(t.Context(), term, "x", seen, map[string]limit.Share{"us": 500_000}); !errors.Is(err, ErrConflict) {
		t.Errorf("published on top of what was not seen: %v", err)
	}
	now, err := pg.Regions(t.Context())
	if err != nil || now[0].Published != 500_000 || now[1].Published != 300_000 || !now[0].Revision.Newer(seen[0].Revision) {
		t.Errorf("regions %+v, %v", now, err)
	}
}
