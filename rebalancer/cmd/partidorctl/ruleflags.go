package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"partidor.dev/partidor/shared/rulesfile"
)

// ruleFlags are the fields of a rule on the command line.
type ruleFlags struct {
	capacity, refill, period, window int64
	maxCost                          int64
	shards                           int
	algorithm, calendar              string
	mode, onError                    string
	prefetch, hideHeaders            bool
	length                           time.Duration
}

func (f *ruleFlags) define(flags *pflag.FlagSet) {
	flags.Int64Var(&f.capacity, "capacity", 0, "burst, or the window's quota, in tokens")
	flags.Int64Var(&f.refill, "refill", 0, "tokens that come back every --period")
	flags.Int64Var(&f.period, "period", 1, "seconds of --refill: 5 and 60 is 5 per minute")
	flags.StringVar(&f.algorithm, "algorithm", "", strings.Join(algorithmNames, ", "))
	flags.Int64Var(&f.window, "window-seconds", 0, "length of a window")
	flags.StringVar(&f.calendar, "window", "", "calendar window of a fixed window, UTC: hour, day, month")
	flags.StringVar(&f.mode, "mode", "", strings.Join(modeNames, ", "))
	flags.StringVar(&f.onError, "on-error", "", strings.Join(onErrorNames, ", "))
	flags.BoolVar(&f.prefetch, "prefetch", false, "let instances take tokens ahead")
	flags.IntVar(&f.shards, "shards", 1, "spread the key over so many buckets")
	flags.Int64Var(&f.maxCost, "max-cost", 0, "largest cost of a request, in tokens; 0 takes the declaration away")
	flags.BoolVar(&f.hideHeaders, "hide-headers", false, "no RateLimit headers")
	flags.DurationVar(&f.length, "for", 0, "end the rule after this; 0 takes an end away")
}

// apply sets what was given.
func (f *ruleFlags) apply(flags *pflag.FlagSet, r *rulesfile.Rule) error {
	var errs []error
	given := func(name string, set func() error) {
		if flags.Changed(name) {
			if err := set(); err != nil {
				errs = append(errs, errors.New("--"+name+": "+err.Error()))
			}
		}
	}
	value := func(name string, set func()) { given(name, func() error { set(); return nil }) }
	value("capacity", func() { r.Capacity = f.capacity })
	value("refill", func() { r.RefillPerSecond = f.refill })
	given("period", func() error {
		if f.period == 0 {
			return errors.New("must be at least 1")
		}
		r.RefillPeriodSeconds = rulesfile.Period(f.period)
		return nil
	})
	value("window-seconds", func() { r.WindowSeconds = f.window })
	value("prefetch", func() { r.Prefetch = f.prefetch })
	value("shards", func() { r.Shards = f.shards })
	value("max-cost", func() { r.MaxCost = f.maxCost })
	value("hide-headers", func() { r.HideHeaders = f.hideHeaders })
	given("algorithm", func() error { return r.Algorithm.UnmarshalText([]byte(f.algorithm)) })
	given("window", func() error { return r.Window.UnmarshalText([]byte(f.calendar)) })
	given("mode", func() error { return r.Mode.UnmarshalText([]byte(f.mode)) })
	given("on-error", func() error { return r.OnError.UnmarshalText([]byte(f.onError)) })
	given("for", func() error {
		if f.length < 0 {
			return errors.New("must not be negative")
		}
		r.ExpiresAt = nil
		if f.length > 0 {
			end := time.Now().Add(f.length).UTC().Truncate(time.Second)
			r.ExpiresAt = &end
		}
		return nil
	})
	if err := errors.Join(append(errs, r.Validate())...); err != nil {
		return usageError{err}
	}
	return nil
}
