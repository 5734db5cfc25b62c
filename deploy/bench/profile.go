package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// record profiles this process, where the limiter and the gateways run, into cpu.pprof and heap.pprof of dir, until what it
// returns is called. Without a dir it does nothing.
func record(dir string) (end func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(fmt.Errorf("profile: %w", err), cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		heap, err := os.Create(filepath.Join(dir, "heap.pprof"))
		if err != nil {
			return errors.Join(fmt.Errorf("profile: %w", err), cpu.Close())
		}
		runtime.GC() // what is in use, not what was
		return errors.Join(cpu.Close(), pprof.WriteHeapProfile(heap), heap.Close())
	}, nil
}
