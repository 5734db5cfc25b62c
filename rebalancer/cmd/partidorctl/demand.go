package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

func demandCommand(t *tool) *cobra.Command {
	hours, scenario := 6, false
	c := &cobra.Command{
		Use: "demand TENANT ROUTE", Short: "Recorded demand of a key, or as a scenario for simulate", Args: args(cobra.ExactArgs(2)),
		Long: `Recorded demand of a key: minutes of up to 24 hours, hours beyond that. With --scenario it is written as a scenario file with the
key's rule and the base split, to be played in virtual time with other parameters or faults.`,
		Example: "  partidorctl demand shop-a create-order --hours 2 --scenario > s.yaml && partidorctl simulate --file s.yaml",
		RunE: t.run(func(cmd *cobra.Command, a []string, c *client) error {
			var p page
			err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("demand", a[0], a[1]), query: url.Values{"hours": {strconv.Itoa(hours)}}}, &p)
			if err != nil {
				return err
			}
			if !scenario {
				return t.show(p.Items, func() { t.demandTable(p.Items) })
			}
			var x item
			if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("explain", a[0], a[1])}, &x); err != nil {
				return err
			}
			var regions page
			if err := c.do(cmd.Context(), call{method: http.MethodGet, path: path("regions")}, &regions); err != nil {
				return err
			}
			s, err := scenarioOf(object(object(x, "key"), "rule"), regions.Items, p.Items)
			if err != nil {
				return err
			}
			s.Name, s.About = "history", fmt.Sprintf("%s/%s, recorded over the last %d h", a[0], a[1], hours)
			out, err := yaml.Marshal(s)
			if err != nil {
				return err
			}
			_, err = t.out.Write(out)
			return err
		}),
	}
	c.Flags().IntVar(&hours, "hours", hours, "how far back")
	c.Flags().BoolVar(&scenario, "scenario", false, "write a scenario file for simulate")
	return c
}

func (t *tool) demandTable(points []item) {
	rows := make([][]string, len(points))
	for i, p := range points {
		rows[i] = []string{text(p, "at"), text(p, "region"), percent(p, "share"), rate(p, "offered"), rate(p, "refused")}
	}
	t.table("AT REGION SHARE OFFERED/S REFUSED/S", rows)
}

// scenario is a file of `simulate`; package sim has all its fields.
type scenario struct {
	Name     string           `yaml:"name"`
	About    string           `yaml:"about"`
	Duration string           `yaml:"duration"`
	Limit    map[string]int64 `yaml:"limit"`
	Regions  []scenarioRegion `yaml:"regions"`
	Network  map[string]any   `yaml:"network"`
}

type scenarioRegion struct {
	Name    string         `yaml:"name"`
	Share   string         `yaml:"share"`
	Traffic []scenarioPart `yaml:"traffic"`
}

type scenarioPart struct {
	Steps []scenarioStep `yaml:"steps"`
}

type scenarioStep struct {
	At   string  `yaml:"at"`
	Rate float64 `yaml:"rate"`
}

// scenarioOf plays each recorded minute, or hour, as one step of load.
func scenarioOf(rule item, regions, points []item) (s scenario, err error) {
	if len(points) == 0 {
		return s, errors.New("nothing is recorded of this key; the keys that offer most are, once a minute")
	}
	refill, _ := rule["refill_per_second"].(float64)
	if refill == 0 {
		return s, errors.New("the key's rule is not a token bucket, which is what simulate plays")
	}
	capacity, _ := rule["capacity"].(float64)
	period, _ := rule["refill_period_seconds"].(float64)
	s.Limit = map[string]int64{"capacity": int64(capacity), "refill_per_second": int64(refill), "refill_period_seconds": max(1, int64(period))}
	s.Network = map[string]any{"one_way": "40ms"}
	begin, err := time.Parse(time.RFC3339Nano, text(points[0], "at"))
	if err != nil {
		return s, err
	}
	steps, last := map[string][]scenarioStep{}, time.Duration(0)
	for _, p := range points {
		at, err := time.Parse(time.RFC3339Nano, text(p, "at"))
		if err != nil {
			return s, err
		}
		offered, _ := p["offered"].(float64)
		last = at.Sub(begin)
		steps[text(p, "region")] = append(steps[text(p, "region")], scenarioStep{At: last.String(), Rate: offered})
	}
	s.Duration = (last + time.Minute).String()
	for _, r := range regions {
		name := text(r, "name")
		if steps[name] == nil {
			steps[name] = []scenarioStep{{At: "0s"}}
		}
		s.Regions = append(s.Regions, scenarioRegion{Name: name, Share: percent(r, "base"), Traffic: []scenarioPart{{Steps: steps[name]}}})
	}
	return s, nil
}
