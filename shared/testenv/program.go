package testenv

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is a program of ours (or anybody's) that a test runs as its own process.
type Program struct {
	tb    testing.TB
	proc  *process
	lines *lineLog
}

// StartProgram runs argv with env added to this process's environment. It is killed when the test ends.
func StartProgram(tb testing.TB, argv []string, env ...string) *Program {
	tb.Helper()
	lines := newLineLog()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return start(tb, newProcess(cmd, lines), lines)
}

// startOf runs a program of a suite.
func startOf(tb testing.TB, s suite, dir, name string, args ...string) *Program {
	tb.Helper()
	lines := newLineLog()
	proc, err := s.process(dir, nil, name, args, lines)
	if err != nil {
		tb.Fatal(err)
	}
	return start(tb, proc, lines)
}

func start(tb testing.TB, proc *process, lines *lineLog) *Program {
	tb.Helper()
	p := &Program{tb: tb, proc: proc, lines: lines}
	if err := proc.spawn(""); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.proc.kill()
		if tb.Failed() {
			tb.Logf("last output of %s:\n%s", proc.cmd.Path, p.proc.output)
		}
	})
	return p
}

// AwaitLine waits for a line of output that match accepts and returns it. Lines from before the call count. The test fails
// when the program ends or time runs out first.
func (p *Program) AwaitLine(within time.Duration, match func(line []byte) bool) []byte {
	p.tb.Helper()
	timeout := time.After(within)
	for from := 0; ; {
		lines, arrived := p.lines.after(from)
		for _, line := range lines {
			from++
			if match(line) {
				return line
			}
		}
		select {
		case <-arrived:
		case <-p.proc.done:
			p.tb.Fatalf("%s ended: %s\n%s", p.proc.cmd.Path, p.proc.cmd.ProcessState, p.proc.output)
		case <-timeout:
			p.tb.Fatalf("%s has not said within %s what the test waits for:\n%s", p.proc.cmd.Path, within, p.proc.output)
		}
	}
}

// Wait waits for the program to end by itself and returns its exit status.
func (p *Program) Wait(within time.Duration) int {
	p.tb.Helper()
	select {
	case <-p.proc.done:
	case <-time.After(within):
		p.tb.Fatalf("%s has not ended within %s:\n%s", p.proc.cmd.Path, within, p.proc.output)
	}
	return p.proc.cmd.ProcessState.ExitCode()
}

// Output is the last few kilobytes that the program wrote.
func (p *Program) Output() string { return p.proc.output.String() }

// Lines are all lines that the program has written so far.
func (p *Program) Lines() [][]byte {
	lines, _ := p.lines.after(0)
	return lines
}

// Stop asks the program to end, as an orchestrator does, and waits until it has.
func (p *Program) Stop() { p.proc.end(syscall.SIGTERM) }

// Kill ends the program at once.
func (p *Program) Kill() { p.proc.kill() }

// Pause freezes the program until Resume.
func (p *Program) Pause() { p.proc.signal(syscall.SIGSTOP) }

// Resume lets a paused program go on.
func (p *Program) Resume() { p.proc.signal(syscall.SIGCONT) }

// lineLog keeps every line of output; tests are short.
type lineLog struct {
	mu      sync.Mutex
	rest    []byte
	lines   [][]byte
	arrived chan struct{} // closed and replaced whenever a line arrives
}

func newLineLog() *lineLog { return &lineLog{arrived: make(chan struct{})} }

func (l *lineLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.lines, l.rest = append(l.lines, bytes.Clone(line)), rest
		close(l.arrived)
		l.arrived = make(chan struct{})
	}
}

func (l *lineLog) after(from int) ([][]byte, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[from:len(l.lines):len(l.lines)], l.arrived
}
