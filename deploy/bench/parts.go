package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// part is one Go benchmark of a package as a run of it printed: value by unit.
type part struct {
	Package string             `json:"package"`
	Name    string             `json:"name"`
	Values  map[string]float64 `json:"values"`
}

// suites are the benchmarks of packages that no request from outside can reach alone.
var suites = []struct{ pkg, pattern, time string }{
	{"gateway/internal/hot/admit", "Prefetched|Ask", "300ms"},
	{"gateway/internal/hot", "Forward|PlainProxy|Refused", "300ms"},
	{"gateway/internal/snapshot", "Lookup|Increment|Build", "200ms"},
	{"gateway/internal/snapshot", "Pauses", "2s"},
	{"gateway/internal/control/rules", "Load", "1x"},
	{"gateway/internal/control/usage", "Count|Report", "200ms"},
	{"rebalancer/internal/collect", "Ingest", "500ms"},
	{"rebalancer/internal/plan", "Plan100kKeys", "3x"},
}

// runParts runs the packages' own benchmarks. It needs the go command and this repository as working directory.
func runParts(ctx context.Context, o options, r *report) error {
	for i, s := range suites {
		if o.brief {
			if i > 0 {
				break
			}
			s.time = "1x"
		}
		if r.late(o, "benchmarks of "+s.pkg) {
			continue
		}
		progress("benchmarks of %s", s.pkg)
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", s.pattern, "-benchtime", s.time, "partidor.dev/partidor/"+s.pkg)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("benchmarks of %s: %w\n%s", s.pkg, err, bytes.TrimSpace(out))
		}
		r.Parts = append(r.Parts, parseParts(s.pkg, string(out))...)
	}
	return nil
}

// parseParts reads the lines of `go test -bench`: a name, how often it ran, and pairs of value and unit.
func parseParts(pkg, out string) (parts []part) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		p := part{pkg, name, map[string]float64{}}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				p.Values[f[i+1]] = v
			}
		}
		parts = append(parts, p)
	}
	return parts
}
