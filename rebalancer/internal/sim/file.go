package sim

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/limit"
)

// file is a scenario as an SRE writes it. testdata/flash.yaml shows every field.
type file struct {
	Name     string        `yaml:"name"`
	About    string        `yaml:"about"`
	Duration time.Duration `yaml:"duration"`
	Step     time.Duration `yaml:"step"`
	Limit    fileLimit     `yaml:"limit"`
	Regions  []fileRegion  `yaml:"regions"`
	Network  fileNetwork   `yaml:"network"`
	Faults   []fileFault   `yaml:"faults"`
	// Leases: regions and control plane sit in at least three failure domains.
	Leases bool       `yaml:"leases"`
	Gates  *fileGates `yaml:"gates"`

	// folder is where the file lies; traces are named relative to it.
	folder string
}

type fileLimit struct {
	Capacity      int64 `yaml:"capacity"`
	Refill        int64 `yaml:"refill_per_second"`
	PeriodSeconds int64 `yaml:"refill_period_seconds"`
}

type fileRegion struct {
	Name string `yaml:"name"`
	// Share is a percentage such as 70% or parts per million.
	Share   string        `yaml:"share"`
	Traffic []fileTraffic `yaml:"traffic"`
}

type fileNetwork struct {
	OneWay  time.Duration `yaml:"one_way"`
	Loss    float64       `yaml:"loss"`
	Repeat  float64       `yaml:"repeat"`
	Reorder float64       `yaml:"reorder"`
}

type fileFault struct {
	// Exactly one of the three names a region (or, for the first two, control).
	Isolated string        `yaml:"isolated"`
	Down     string        `yaml:"down"`
	DataLost string        `yaml:"data_lost"`
	From     time.Duration `yaml:"from"`
	To       time.Duration `yaml:"to"`
}

type fileGates struct {
	Efficiency      float64 `yaml:"efficiency_percent"`
	RefusedWithRoom float64 `yaml:"refused_with_room_percent"`
	OverAdmission   float64 `yaml:"over_admission_tokens"`
	Messages        float64 `yaml:"messages_per_minute"`
}

// LoadScenario reads a scenario file. Errors name file, line and field.
func LoadScenario(path string) (Scenario, error) {
	f := file{folder: filepath.Dir(path)}
	if err := config.Load(path, &f); err != nil {
		return Scenario{}, fmt.Errorf("load scenario: %w", err)
	}
	return f.scenario()
}

// SetDefaults implements config.Defaulter.
func (f *file) SetDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&f.Duration, 15*time.Minute)
	def(&f.Step, tick)
	def(&f.Network.OneWay, 40*time.Millisecond)
	if f.Limit.PeriodSeconds == 0 {
		f.Limit.PeriodSeconds = 1
	}
}

// Validate implements config.Validator.
func (f *file) Validate() error {
	var faults config.Faults
	if f.Name == "" {
		faults.Add("name", "must not be empty")
	}
	if f.Step < time.Millisecond || f.Step > time.Second {
		faults.Add("step", "%v, must be from 1ms to 1s", f.Step)
	}
	if f.Duration < f.Step || f.Duration > 366*24*time.Hour {
		faults.Add("duration", "%v, must be from one step to a year", f.Duration)
	}
	rule := f.rule()
	if err := rule.Validate(); err != nil {
		faults.Add("limit", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	f.validateRegions(&faults)
	f.validateFaults(&faults)
	for name, p := range map[string]float64{"loss": f.Network.Loss, "repeat": f.Network.Repeat, "reorder": f.Network.Reorder} {
		if !(p >= 0 && p < 1) {
			faults.Add("network."+name, "%v, must be from 0 to below 1", p)
		}
	}
	if f.Network.OneWay < 0 || f.Network.OneWay > 10*time.Second {
		faults.Add("network.one_way", "%v, must be from 0 to 10s", f.Network.OneWay)
	}
	return faults.Err()
}

func (f *file) validateRegions(faults *config.Faults) {
	split := limit.Split{}
	for i := range f.Regions {
		r, field := &f.Regions[i], fmt.Sprintf("regions[%d]", i)
		if r.Name == Control {
			faults.Add(field+".name", "%q is the control plane", Control)
		}
		if _, twice := split[r.Name]; twice {
			faults.Add(field+".name", "%q is there twice", r.Name)
		}
		share, err := parseShare(r.Share)
		if err != nil {
			faults.Add(field+".share", "%s", err)
		}
		split[r.Name] = share
		for j := range r.Traffic {
			if err := r.Traffic[j].validate(); err != nil {
				faults.Add(fmt.Sprintf("%s.traffic[%d]", field, j), "%s", err)
			}
		}
	}
	if err := split.Validate(); err != nil {
		faults.Add("regions", "%s", err)
	}
}

func (f *file) validateFaults(faults *config.Faults) {
	for i := range f.Faults {
		field := fmt.Sprintf("faults[%d]", i)
		fault, err := f.Faults[i].fault()
		if err != nil {
			faults.Add(field, "%s", err)
			continue
		}
		known := fault.Region == Control && fault.Kind != DataLost
		for _, r := range f.Regions {
			known = known || r.Name == fault.Region
		}
		if !known {
			faults.Add(field, "no region %q", fault.Region)
		}
		if fault.Kind != DataLost && fault.To <= fault.From {
			faults.Add(field+".to", "%v, must be after from", fault.To)
		}
	}
}

func (f *fileFault) fault() (Fault, error) {
	out := Fault{From: f.From, To: f.To}
	n := 0
	for kind, region := range []string{Isolated: f.Isolated, Down: f.Down, DataLost: f.DataLost} {
		if region != "" {
			out.Kind, out.Region = FaultKind(kind), region
			n++
		}
	}
	if n != 1 {
		return out, fmt.Errorf("say exactly one of isolated, down and data_lost")
	}
	return out, nil
}

func (f *file) rule() limit.Rule {
	return limit.Rule{Capacity: f.Limit.Capacity, Refill: f.Limit.Refill, PeriodSeconds: f.Limit.PeriodSeconds}
}

func (f *file) scenario() (Scenario, error) {
	s := Scenario{
		Name: f.Name, About: f.About, Duration: f.Duration, Step: f.Step, Rule: f.rule(),
		Network: Network{OneWay: f.Network.OneWay, Loss: f.Network.Loss, Repeat: f.Network.Repeat, Reorder: f.Network.Reorder},
	}
	for i := range f.Regions {
		share, err := parseShare(f.Regions[i].Share)
		if err != nil {
			return s, err
		}
		region := Region{Name: f.Regions[i].Name, Base: share}
		var sum Sum
		for j := range f.Regions[i].Traffic {
			t, err := f.Regions[i].Traffic[j].traffic(f.folder)
			if err != nil {
				return s, fmt.Errorf("regions[%d].traffic[%d]: %w", i, j, err)
			}
			sum = append(sum, t)
		}
		region.Traffic = sum
		s.Regions = append(s.Regions, region)
	}
	for i := range f.Faults {
		fault, err := f.Faults[i].fault()
		if err != nil {
			return s, err
		}
		s.Faults = append(s.Faults, fault)
	}
	if f.Leases {
		s = s.leased()
	}
	if g := f.Gates; g != nil {
		s.Gates = &Gates{Efficiency: g.Efficiency / 100, RefusedWithRoom: g.RefusedWithRoom / 100, OverAdmission: max(1, g.OverAdmission), Messages: g.Messages}
	}
	return s, nil
}

// parseShare reads 70%, 33.3333% or 700000.
func parseShare(s string) (limit.Share, error) {
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(v >= 0 && v <= 100) {
			return 0, fmt.Errorf("share %q is no percentage from 0 to 100", s)
		}
		return limit.Share(v*10_000 + 0.5), nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 0 || limit.Share(v) > limit.Whole {
		return 0, fmt.Errorf("share %q is neither a percentage nor parts per million", s)
	}
	return limit.Share(v), nil
}
