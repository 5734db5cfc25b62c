package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// gubernatorModule is the peer's own module: what it brings would be in every check of this repository.
const gubernatorModule = "deploy/bench/gubernator"

// runGubernator measures the peer in its own process, in rounds like the others. Where it cannot be built, for want of the module proxy say,
// it is left out and the report says so.
func runGubernator(ctx context.Context, o options, r *report) error {
	dir, err := os.MkdirTemp("", "gubernator-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	progress("building gubernator")
	program := filepath.Join(dir, "peer")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Env = gubernatorModule, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		r.LeftOut = append(r.LeftOut, fmt.Sprintf("gubernator, which does not build (%v: %.200s)", err, strings.TrimSpace(string(out))))
		return nil
	}
	for _, l := range o.loads {
		for _, way := range []struct {
			name string
			args []string
		}{{"gubernator in process", nil}, {"gubernator gRPC", []string{"-grpc"}}} {
			var rounds []sample
			for i := range o.rounds {
				progress("%d keys, %d callers, round %d: %s", l.Keys, l.Callers, i+1, way.name)
				x, err := askGubernator(ctx, program, l, o, way.args)
				if err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
				rounds = append(rounds, x)
			}
			r.Results = append(r.Results, result{way.name, l, median(rounds), rounds})
		}
	}
	return nil
}

func askGubernator(ctx context.Context, program string, l load, o options, args []string) (s sample, err error) {
	args = append(args, "-keys", strconv.Itoa(l.Keys), "-callers", strconv.Itoa(l.Callers), "-round", o.round.String())
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(out, &s)
}
