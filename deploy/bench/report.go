package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// result is the median of one subject under one load, and its rounds.
type result struct {
	Subject string `json:"subject"`
	load
	sample
	Rounds []sample `json:"rounds"`
}

// took is how long a section ran.
type took struct {
	Section string  `json:"section"`
	Seconds float64 `json:"seconds"`
}

// report is the whole run.
type report struct {
	When     time.Time         `json:"when"`
	Machine  map[string]string `json:"machine"`
	Versions map[string]string `json:"versions"`
	Round    time.Duration     `json:"round_ns"`
	Rounds   int               `json:"rounds"`
	Took     []took            `json:"took"`
	LeftOut  []string          `json:"left_out,omitempty"`
	Targets  []target          `json:"targets"`
	Results  []result          `json:"results"`
	Proxies  []proxyResult     `json:"proxies"`
	Paced    []pacedResult     `json:"paced"`
	Fleet    []proxyResult     `json:"fleet"`
	Parts    []part            `json:"parts"`
}

func machine() map[string]string {
	m := map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version()}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, model, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				m["model"] = strings.TrimSpace(model)
				break
			}
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m["load before"] = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	return m
}

// versions of the subjects, from the build.
func versions() map[string]string {
	v := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			for _, name := range []string{"redis/go-redis", "redis_rate", "throttled", "x/time"} {
				if strings.Contains(d.Path, name) {
					v[d.Path] = d.Version
				}
			}
		}
	}
	return v
}

func (r *report) find(subject string, l load) *result {
	for i := range r.Results {
		if r.Results[i].Subject == subject && r.Results[i].load == l {
			return &r.Results[i]
		}
	}
	return nil
}

func findFront(list []proxyResult, name string) *proxySample {
	for i := range list {
		if list[i].Front == name {
			return &list[i].proxySample
		}
	}
	return nil
}

func (r *report) paced(name string, part float64) *pacedResult {
	for i := range r.Paced {
		if r.Paced[i].Front == name && r.Paced[i].Load == part {
			return &r.Paced[i]
		}
	}
	return nil
}

func (r *report) part(name, unit string) (float64, bool) {
	for _, p := range r.Parts {
		if p.Name == name {
			v, ok := p.Values[unit]
			return v, ok
		}
	}
	return 0, false
}
