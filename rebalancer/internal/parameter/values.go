package parameter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"partidor.dev/partidor/rebalancer/internal/plan"
)

// Values are all parameters.
type Values struct {
	Plan plan.Parameters
	// Paused stops the slow loop: nothing is planned, committed or advised.
	Paused bool
	// FrozenRegions and FrozenTenants keep the shares they have; the rest goes on.
	FrozenRegions []string
	FrozenTenants []string
	// ControlDomain is the failure domain of the control plane, empty for none.
	ControlDomain string
	// FastLoop lets regions lend and move share between themselves.
	FastLoop bool
	// Shadow is the kill switch: gateways decide and count, but admit everything.
	Shadow bool
	// HistoryDays is how long history and recorded demand are kept.
	HistoryDays int
}

// Default values of the program.
func Default() Values {
	return Values{Plan: plan.DefaultParameters(), FastLoop: true, HistoryDays: 90}
}

// leastHistoryDays is also what the ledger holds to: no younger entry can be dropped (migration 00016).
const leastHistoryDays = 7

// Validate reports every parameter outside its bounds, by name.
func (v Values) Validate() error {
	err := v.Plan.Validate()
	if v.HistoryDays < leastHistoryDays || v.HistoryDays > 3650 {
		err = errors.Join(err, fmt.Errorf("history_days: %d, must be from %d to 3650", v.HistoryDays, leastHistoryDays))
	}
	return err
}

// With is v with the given values set. Unknown names, values that cannot be understood and values out of bounds are
// errors; all are reported, and the result then holds those that are right.
func (v Values) With(set map[string]json.RawMessage) (Values, error) {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(set)) {
		d, ok := Find(name)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: no such parameter", name))
			continue
		}
		next := v
		if err := d.set(&next, set[name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if err := next.Validate(); err != nil {
			errs = append(errs, err)
			continue
		}
		v = next
	}
	return v, errors.Join(errs...)
}
