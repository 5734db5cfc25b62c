package parameter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// Definition is one parameter.
type Definition struct {
	Name string
	// Help is one sentence for people; Kind is duration, fraction, share, number, switch, name or names.
	Help, Kind string

	set func(*Values, json.RawMessage) error
	get func(*Values) any
}

// Value of the parameter in v, as JSON.
func (d *Definition) Value(v Values) json.RawMessage {
	out, err := json.Marshal(d.get(&v))
	if err != nil {
		panic(err) // strings, numbers and lists of strings
	}
	return out
}

// Find the parameter called name.
func Find(name string) (*Definition, bool) {
	for i := range definitions {
		if definitions[i].Name == name {
			return &definitions[i], true
		}
	}
	return nil, false
}

// All parameters in the order in which people should read them.
func All() []Definition { return definitions }

var definitions = []Definition{
	duration("cycle", "Time between two plans.", func(v *Values) *time.Duration { return &v.Plan.Cycle }),
	duration("early_after", "Shortest time between two plans when keys are refused while others idle.", func(v *Values) *time.Duration { return &v.Plan.EarlyAfter }),
	fraction("floor", "Part of its base share that a region always keeps.", func(v *Values) *float64 { return &v.Plan.Floor }),
	share("deadband", "A key whose every region is nearer to its target than this is left alone.", func(v *Values) *limit.Share { return &v.Plan.Deadband }),
	share("step", "Most that one region's share changes in one cycle.", func(v *Values) *limit.Share { return &v.Plan.Step }),
	number("headroom", "Standard deviations of one second's arrivals that a claim adds to its demand.", func(v *Values) *float64 { return &v.Plan.Headroom }),
	fraction("spare_by_need", "Part of the unclaimed limit that follows the claims; the rest follows the base split.", func(v *Values) *float64 { return &v.Plan.SpareByNeed }),
	duration("mean_half_life", "How fast the mean follows the load.", func(v *Values) *time.Duration { return &v.Plan.MeanHalfLife }),
	duration("peak_half_life", "How fast a peak is forgotten.", func(v *Values) *time.Duration { return &v.Plan.PeakHalfLife }),
	fraction("peak_weight", "Part of a held peak that counts as demand.", func(v *Values) *float64 { return &v.Plan.PeakWeight }),
	toggle("paused", "Stops planning: shares stay where they are.", func(v *Values) *bool { return &v.Paused }),
	names("frozen_regions", "Regions whose shares stay where they are.", func(v *Values) *[]string { return &v.FrozenRegions }),
	names("frozen_tenants", "Tenants whose shares stay where they are.", func(v *Values) *[]string { return &v.FrozenTenants }),
	name("control_domain", "Failure domain of the control plane, for votes on leases; empty for none.", func(v *Values) *string { return &v.ControlDomain }),
	toggle("fast_loop", "Lets regions lend and move share between themselves within seconds.", func(v *Values) *bool { return &v.FastLoop }),
	toggle("shadow", "Kill switch: gateways decide and count, but admit everything.", func(v *Values) *bool { return &v.Shadow }),
	whole("history_days", "Days that history and recorded demand are kept.", func(v *Values) *int { return &v.HistoryDays }),
}

// strict decodes raw into v and nothing beside it. null, which would leave v as it is, is no value.
func strict(raw json.RawMessage, v any) error {
	if string(bytes.TrimSpace(raw)) == "null" {
		return errors.New("null is no value")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value")
	}
	return nil
}

func duration(name, help string, field func(*Values) *time.Duration) Definition {
	return Definition{Name: name, Help: help, Kind: "duration",
		get: func(v *Values) any { return field(v).String() },
		set: func(v *Values, raw json.RawMessage) error {
			var s string
			if err := strict(raw, &s); err != nil {
				return errors.New(`must be a duration such as "2m"`)
			}
			d, err := time.ParseDuration(s)
			if err != nil {
				return fmt.Errorf(`%q is not a duration such as "2m"`, s)
			}
			*field(v) = d
			return nil
		}}
}

func fraction(name, help string, field func(*Values) *float64) Definition {
	return Definition{Name: name, Help: help, Kind: "fraction",
		get: func(v *Values) any { return *field(v) },
		set: func(v *Values, raw json.RawMessage) error {
			var s string
			if strict(raw, &s) == nil {
				f, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
				if err != nil || !strings.HasSuffix(s, "%") {
					return fmt.Errorf(`%q is neither a number from 0 to 1 nor a percentage such as "5%%"`, s)
				}
				*field(v) = f / 100
				return nil
			}
			if strict(raw, field(v)) != nil {
				return errors.New(`must be a number from 0 to 1 or a percentage such as "5%"`)
			}
			return nil
		}}
}

func share(name, help string, field func(*Values) *limit.Share) Definition {
	return Definition{Name: name, Help: help, Kind: "share",
		get: func(v *Values) any { return int64(*field(v)) },
		set: func(v *Values, raw json.RawMessage) error {
			part, err := rulesfile.ParsePart(strings.Trim(string(raw), `"`))
			*field(v) = limit.Share(part)
			return err
		}}
}

func number(name, help string, field func(*Values) *float64) Definition {
	return Definition{Name: name, Help: help, Kind: "number",
		get: func(v *Values) any { return *field(v) },
		set: func(v *Values, raw json.RawMessage) error {
			if strict(raw, field(v)) != nil {
				return errors.New("must be a number")
			}
			return nil
		}}
}

func whole(name, help string, field func(*Values) *int) Definition {
	return Definition{Name: name, Help: help, Kind: "number",
		get: func(v *Values) any { return *field(v) },
		set: func(v *Values, raw json.RawMessage) error {
			if strict(raw, field(v)) != nil {
				return errors.New("must be a whole number")
			}
			return nil
		}}
}

func toggle(name, help string, field func(*Values) *bool) Definition {
	return Definition{Name: name, Help: help, Kind: "switch",
		get: func(v *Values) any { return *field(v) },
		set: func(v *Values, raw json.RawMessage) error {
			if strict(raw, field(v)) != nil {
				return errors.New("must be true or false")
			}
			return nil
		}}
}

func name(name, help string, field func(*Values) *string) Definition {
	return Definition{Name: name, Help: help, Kind: "name",
		get: func(v *Values) any { return *field(v) },
		set: func(v *Values, raw json.RawMessage) error {
			var s string
			if strict(raw, &s) != nil {
				return errors.New("must be a name")
			}
			if s != "" {
				if err := limit.ValidateName("name", s); err != nil {
					return err
				}
			}
			*field(v) = s
			return nil
		}}
}

func names(name, help string, field func(*Values) *[]string) Definition {
	return Definition{Name: name, Help: help, Kind: "names",
		get: func(v *Values) any { return append([]string{}, *field(v)...) },
		set: func(v *Values, raw json.RawMessage) error {
			var list []string
			if strict(raw, &list) != nil {
				return errors.New("must be a list of names")
			}
			for _, s := range list {
				if err := limit.ValidateName("name", s); err != nil {
					return err
				}
			}
			*field(v) = list
			return nil
		}}
}
