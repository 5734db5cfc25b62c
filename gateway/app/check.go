package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	sharedconfig "partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/telemetry"
)

// checkWithin bounds the look at the database, longer than a connection to one that does not answer may take.
const checkWithin = 3 * connectTimeout

// Check judges a configuration as the start of a gateway would and in the same words, without serving anything: the file
// itself, the secrets it names, the rules file or the database. Where the database is away and a saved snapshot would serve,
// that is a warning.
func Check(ctx context.Context, o Options) (warnings []string, err error) {
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	if err := checkRules(c); err != nil {
		return nil, err
	}
	tel := telemetry.Discard()
	g := &gateway{
		options: o, config: c, started: time.Now(), telemetry: tel, logger: tel.Logger,
		meter: tel.MeterProvider.Meter(scope), tracer: tel.TracerProvider.Tracer(scope), holder: snapshot.NewHolder(c.Region),
	}
	defer g.close()
	if err := g.buildStore(ctx); err != nil {
		return nil, g.refused(err)
	}
	if _, err := g.natsOptions(ctx); err != nil {
		return nil, g.refused(err)
	}
	if err := g.buildRules(ctx); err != nil {
		return nil, g.refused(err)
	}
	within, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if err := g.loader.Start(within); err != nil {
		return nil, g.noRules(err)
	}
	return g.rulesWarnings(), nil
}

// refused is what keeps a gateway from starting, with file and line where a field is to blame.
func (g *gateway) refused(err error) error {
	var field sharedconfig.FieldError
	if errors.As(err, &field) {
		return g.config.Locate(err)
	}
	return fmt.Errorf("start gateway: %w", err)
}

// noRules is why there is nothing to serve by, with file, line and field.
func (g *gateway) noRules(err error) error {
	return g.config.Locate(&sharedconfig.Fault{Field: g.config.RulesField(), Err: err})
}

// rulesWarnings tells what is wrong with rules that a gateway would serve by all the same.
func (g *gateway) rulesWarnings() (warnings []string) {
	warn := func(format string, args ...any) {
		warnings = append(warnings, g.noRules(fmt.Errorf(format, args...)).Error())
	}
	s := g.loader.Status()
	if s.Stale {
		warn("the database is away, a gateway would serve by the snapshot saved at %s: %w", s.ConfirmedAt.Format(time.RFC3339), s.Err)
	}
	if s.Faults > 0 {
		warn("%d rows of the database are refused, the gateway's log names them", s.Faults)
	}
	return warnings
}
