package upkeep

import (
	"context"
	"log/slog"
	"time"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/shared/limit"
)

// Ledger is where things are kept. Writes fail with ledger.ErrFenced where the term is over.
type Ledger interface {
	RecordDemand(ctx context.Context, term int64, points []ledger.DemandPoint) error
	RollUpDemand(ctx context.Context, term int64, keep time.Duration) error
	EndExpired(ctx context.Context, term int64) (int, error)
	Age(ctx context.Context, term int64, keep time.Duration) (int64, error)
}

// Board shows the demand.
type Board interface {
	Picture(ctx context.Context) (*board.Picture, error)
	// Keys are the named ones as they are now, in the given order.
	Keys(names []limit.Key) []board.Key
}

// Options of a Keeper. All are needed.
type Options struct {
	Ledger     Ledger
	Board      Board
	Parameters func() parameter.Values
	Logger     *slog.Logger
}

// Keeper does the upkeep while its process leads.
type Keeper struct{ Options }

const (
	// recordKeys is how many keys are recorded one by one.
	recordKeys = 200
	// expireEvery and ageEvery are the turns of the rest; recording has the minute.
	expireEvery = ledger.EndAhead / 2 // so that what comes back is there in time
	ageEvery    = 10 * time.Minute
	timeout     = time.Minute
)

// Lead works until ctx ends.
func (k *Keeper) Lead(ctx context.Context, term int64) {
	record, expire, age := time.NewTicker(ledger.DemandMinute), time.NewTicker(expireEvery), time.NewTicker(ageEvery)
	defer record.Stop()
	defer expire.Stop()
	defer age.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-record.C:
			k.try(ctx, "record demand", func(ctx context.Context) error { return k.record(ctx, term, now) })
		case <-expire.C:
			k.try(ctx, "end expired rules", func(ctx context.Context) error {
				ended, err := k.Ledger.EndExpired(ctx, term)
				if ended > 0 {
					k.Logger.InfoContext(ctx, "temporary rules have expired", "count", ended)
				}
				return err
			})
		case <-age.C:
			k.try(ctx, "age history", func(ctx context.Context) error { return k.age(ctx, term) })
		}
	}
}

func (k *Keeper) try(ctx context.Context, what string, do func(context.Context) error) {
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := do(call); err != nil && ctx.Err() == nil {
		k.Logger.WarnContext(ctx, "upkeep failed, will be tried again", "what", what, "error", err)
	}
}

func (k *Keeper) age(ctx context.Context, term int64) error {
	keep := time.Duration(k.Parameters().HistoryDays) * 24 * time.Hour
	if err := k.Ledger.RollUpDemand(ctx, term, keep); err != nil {
		return err
	}
	dropped, err := k.Ledger.Age(ctx, term, keep)
	if dropped > 0 {
		k.Logger.InfoContext(ctx, "history aged", "dropped", dropped)
	}
	return err
}

func (k *Keeper) record(ctx context.Context, term int64, now time.Time) error {
	p, err := k.Board.Picture(ctx)
	if p == nil || err != nil {
		return err // demand of an old picture would be recorded twice
	}
	offering := p.MostOffered(recordKeys, func(key int) bool { offered, _ := p.Rate(key); return offered > 0 })
	names := make([]limit.Key, len(offering))
	for i, at := range offering {
		names[i] = p.Keys[at]
	}
	return k.Ledger.RecordDemand(ctx, term, Points(p, offering, k.Board.Keys(names), now.UTC().Truncate(time.Second)))
}

// Points is one minute of recorded demand: the keys that offer most, which stand in the picture at the given places, and the sum
// of the rest.
func Points(p *board.Picture, places []int, most []board.Key, at time.Time) []ledger.DemandPoint {
	n := len(p.Regions)
	points := make([]ledger.DemandPoint, 0, (len(most)+1)*n)
	for _, key := range most {
		for _, s := range key.Regions {
			points = append(points, ledger.DemandPoint{At: at, Tenant: key.Tenant, Route: key.Route, Region: s.Region,
				Offered: float32(s.Offered), Refused: float32(s.Refused), Share: s.Share})
		}
	}
	if len(most) < recordKeys {
		return points // there are no others
	}
	named := make(map[int]bool, len(places))
	for _, key := range places {
		named[key] = true
	}
	offered, refused := make([]float64, n), make([]float64, n)
	for i, r := range p.Rates {
		if !named[i/n] {
			offered[i%n] += float64(r.Offered)
			refused[i%n] += float64(r.Refused)
		}
	}
	for j, r := range p.Regions {
		points = append(points, ledger.DemandPoint{At: at, Tenant: limit.Wildcard, Route: limit.Wildcard, Region: r.Name,
			Offered: float32(offered[j]), Refused: float32(refused[j])})
	}
	return points
}
