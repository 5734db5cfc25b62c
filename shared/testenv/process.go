package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a server may take until it answers. Generous: continuous integration runs on two cores.
const startTimeout = 30 * time.Second

// fetchTimeout is the same for a container, whose image may have to be fetched first.
const fetchTimeout = 5 * time.Minute

// process is one running server together with the guard that ends it when the test binary disappears.
type process struct {
	cmd       *exec.Cmd
	contained bool // cmd stands for a server in a container, see incontainer
	output    *tail
	done      chan struct{} // closed once the server has been reaped

	guard     *exec.Cmd
	guardLife io.Closer // the guard acts when this pipe closes, also by the death of the test binary
}

// newProcess prepares cmd to run. Its output goes to the process's tail and to the writers given.
func newProcess(cmd *exec.Cmd, also ...io.Writer) *process {
	p := &process{cmd: cmd, output: &tail{}, done: make(chan struct{})}
	out := io.MultiWriter(append(also, p.output)...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.WaitDelay = time.Second
	// A group of its own keeps a terminal's Ctrl-C from reaching servers before the test has cleaned up.
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	p.cmd.SysProcAttr.Setpgid = true
	return p
}

// spawn starts the process and its guard. removeDir, where given, is deleted by the guard after the server's end.
func (p *process) spawn(removeDir string) error {
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.cmd.Path, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	if err := p.startGuard(removeDir); err != nil {
		p.kill()
		return err
	}
	return nil
}

func (p *process) startGuard(removeDir string) error {
	// SIGQUIT first: PostgreSQL then ends and reaps its own children, Redis simply ends.
	const script = `cat >/dev/null; kill -QUIT "$1" 2>/dev/null && sleep 1
kill -KILL "-$1" 2>/dev/null; [ -z "$2" ] || rm -rf -- "$2"`
	p.guard = exec.Command("sh", "-c", script, "guard", strconv.Itoa(p.cmd.Process.Pid), removeDir)
	p.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	life, err := p.guard.StdinPipe()
	if err != nil {
		return fmt.Errorf("start guard: %w", err)
	}
	p.guardLife = life
	if err := p.guard.Start(); err != nil {
		return fmt.Errorf("start guard: %w", err)
	}
	return nil
}

// kill ends the server at once, without a chance to save anything, and waits until it is gone.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// end sends sig, waits for the server's end (killing it if sig does not suffice) and dismisses the guard first, so that
// the guard can never hit a process that has inherited the number.
func (p *process) end(sig syscall.Signal) {
	if p.guard != nil && p.guard.Process != nil {
		_ = p.guard.Process.Kill()
		_ = p.guard.Wait()
		_ = p.guardLife.Close()
	}
	p.signal(syscall.SIGCONT) // a stopped process handles no signal but SIGKILL
	p.signal(sig)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// signal sends sig to the server, if it still runs.
func (p *process) signal(sig syscall.Signal) {
	if p.contained {
		// What cannot be caught cannot be passed on; others stand for it.
		switch sig {
		case syscall.SIGKILL:
			sig = syscall.SIGUSR1
		case syscall.SIGSTOP:
			sig = syscall.SIGTSTP
		}
	}
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(sig)
	}
}

// awaitReady calls probe until it succeeds, the process ends or startTimeout has passed.
func (p *process) awaitReady(probe func() error) error {
	within := startTimeout
	if p.contained {
		within = fetchTimeout
	}
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once:\n%s", filepath.Base(p.cmd.Path), p.output)
		case <-deadline.C:
			return fmt.Errorf("%s does not answer after %s: %w\n%s", filepath.Base(p.cmd.Path), within, err, p.output)
		case <-retry.C:
		}
	}
}

// tail keeps the last bytes a server wrote, for the message of a failing test.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if extra := len(t.buf) - tailBytes; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}

// FreePort returns a TCP port of the loopback interface that nobody listens on. Another process may take it before the
// caller does, so starters try again with another one.
func FreePort(tb testing.TB) int {
	tb.Helper()
	port, err := freePort()
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("find a free port: not TCP")
	}
	return addr.Port, nil
}

// attempts is how often a start is tried when another process grabs the port in between.
const attempts = 5
