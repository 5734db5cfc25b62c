package testenv_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/testenv"
)

// engine is a Docker engine as far as testenv needs one: the requests that testcontainers-go makes are answered, and what
// should run in a container runs as a process of this machine.
type engine struct {
	t *testing.T

	mu         sync.Mutex
	pulled     map[string]bool
	containers map[string]*contained
	log        []string
}

// contained is what a container's create request says, and the process that stands for it.
type contained struct {
	Image, User, WorkingDir string
	Entrypoint, Cmd         []string
	HostConfig              struct {
		NetworkMode string
		Binds       []string
		Init        *bool
	}

	cmd    *exec.Cmd
	output *frames
	done   chan struct{}
}

func startEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{t: t, pulled: map[string]bool{}, containers: map[string]*contained{}}
	mux := http.NewServeMux()
	answer := func(pattern string, f func(w http.ResponseWriter, r *http.Request, c *contained)) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /{version}"+path, func(w http.ResponseWriter, r *http.Request) {
			e.mu.Lock()
			c := e.containers[r.PathValue("id")]
			e.log = append(e.log, method+" "+path[strings.LastIndexByte(path, '/')+1:])
			e.mu.Unlock()
			if c == nil && strings.Contains(path, "{id}") {
				http.Error(w, `{"message": "no such container"}`, http.StatusNotFound)
				return
			}
			f(w, r, c)
		})
	}
	say := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	type object = map[string]any
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.48") })
	answer("GET /info", func(w http.ResponseWriter, _ *http.Request, _ *contained) { say(w, 200, object{"OSType": "linux"}) })
	answer("GET /networks", func(w http.ResponseWriter, _ *http.Request, _ *contained) {
		say(w, 200, []object{{"Name": "bridge", "Id": "b", "Driver": "bridge"}})
	})
	answer("GET /images/{image}/json", func(w http.ResponseWriter, r *http.Request, _ *contained) {
		if !e.pulled[r.PathValue("image")] {
			say(w, 404, object{"message": "no such image"})
			return
		}
		say(w, 200, object{"Id": "sha256:1", "Os": "linux", "Architecture": "amd64",
			"Config": object{"ExposedPorts": object{"6379/tcp": object{}}}})
	})
	answer("POST /images/create", func(w http.ResponseWriter, r *http.Request, _ *contained) {
		name := r.FormValue("fromImage")
		e.pulled[name[strings.LastIndexByte(name, '/')+1:]+":"+r.FormValue("tag")] = true
		say(w, 200, object{"status": "done"})
	})
	answer("POST /containers/create", func(w http.ResponseWriter, r *http.Request, _ *contained) {
		c := &contained{output: newFrames(), done: make(chan struct{})}
		if err := json.NewDecoder(r.Body).Decode(c); err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		id := fmt.Sprintf("%064d", len(e.containers)+1)
		e.containers[id] = c
		say(w, 201, object{"Id": id})
	})
	answer("POST /containers/{id}/start", func(w http.ResponseWriter, _ *http.Request, c *contained) {
		if err := c.start(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(204)
	})
	answer("GET /containers/{id}/json", func(w http.ResponseWriter, r *http.Request, c *contained) {
		say(w, 200, object{"Id": r.PathValue("id"), "Name": "/c", "State": object{"Running": true, "Status": "running"},
			"Config": object{"Image": c.Image}, "HostConfig": object{}, "NetworkSettings": object{"Networks": object{}}})
	})
	answer("GET /containers/{id}/logs", func(w http.ResponseWriter, r *http.Request, c *contained) { c.output.follow(r.Context(), w, c.done) })
	answer("POST /containers/{id}/wait", func(w http.ResponseWriter, _ *http.Request, c *contained) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush() // tells that the wait has begun
		<-c.done
		_ = json.NewEncoder(w).Encode(object{"StatusCode": max(0, c.cmd.ProcessState.ExitCode())})
	})
	signal := func(sig func(r *http.Request) syscall.Signal) func(http.ResponseWriter, *http.Request, *contained) {
		return func(w http.ResponseWriter, r *http.Request, c *contained) {
			_ = syscall.Kill(c.cmd.Process.Pid, sig(r))
			w.WriteHeader(204)
		}
	}
	byName := map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGQUIT": syscall.SIGQUIT}
	answer("POST /containers/{id}/kill", signal(func(r *http.Request) syscall.Signal { return byName[r.FormValue("signal")] }))
	answer("POST /containers/{id}/pause", signal(func(*http.Request) syscall.Signal { return syscall.SIGSTOP }))
	answer("POST /containers/{id}/unpause", signal(func(*http.Request) syscall.Signal { return syscall.SIGCONT }))
	answer("POST /containers/{id}/stop", signal(func(*http.Request) syscall.Signal { return syscall.SIGKILL }))
	answer("DELETE /containers/{id}", func(w http.ResponseWriter, r *http.Request, c *contained) {
		_ = syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.done
		w.WriteHeader(204)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Setenv("DOCKER_HOST", "tcp://"+s.Listener.Addr().String())
	t.Setenv("PARTIDOR_TEST_CONTAINERS", "yes")
	return e
}

// start runs the container's command from this machine's own programs.
func (c *contained) start() error {
	argv := append(c.Entrypoint, c.Cmd...)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + argv[0])
		if len(found) == 0 {
			return err
		}
		path = found[len(found)-1]
	}
	c.cmd = exec.Command(path, argv[1:]...)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = c.WorkingDir, c.output, c.output
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var as syscall.Credential
	if _, err := fmt.Sscanf(c.User, "%d:%d", &as.Uid, &as.Gid); err != nil {
		return err
	}
	if int(as.Uid) != os.Geteuid() {
		c.cmd.SysProcAttr.Credential = &as
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	return nil
}

// count tells how often a request was made, and how many containers still run.
func (e *engine) count(request string) (n, running int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.log {
		if r == request {
			n++
		}
	}
	for _, c := range e.containers {
		select {
		case <-c.done:
		default:
			running++
		}
	}
	return n, running
}

// frames is output in the form in which an engine sends it: a head of eight bytes, then the bytes.
type frames struct {
	mu      sync.Mutex
	data    []byte
	arrived chan struct{}
}

func newFrames() *frames { return &frames{arrived: make(chan struct{}, 1)} }

func (f *frames) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data = binary.BigEndian.AppendUint32(append(f.data, 1, 0, 0, 0), uint32(len(b)))
	f.data = append(f.data, b...)
	select {
	case f.arrived <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (f *frames) follow(ctx context.Context, w http.ResponseWriter, done <-chan struct{}) {
	for last := false; ; {
		f.mu.Lock()
		_, _ = w.Write(f.data)
		f.data = nil
		f.mu.Unlock()
		_ = http.NewResponseController(w).Flush()
		if last {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-f.arrived:
		case <-done:
			last = true
		}
	}
}

// Where only Docker is there, servers run in containers and can be treated as installed ones are.
func TestServersRunInContainersWhereDockerAnswers(t *testing.T) {
	e := startEngine(t)
	t.Run("redis", func(t *testing.T) {
		ctx := t.Context()
		r := testenv.StartRedis(t, testenv.RedisAppendOnly())
		if err := r.Client().Set(ctx, "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		r.Kill()
		if err := r.Client().Ping(ctx).Err(); err == nil {
			t.Error("a killed server answers")
		}
		r.Restart()
		if got := r.Client().Get(ctx, "k").Val(); got != "v" {
			t.Errorf("after a crash %q, want what was written", got)
		}
		r.Pause()
		frozen := r.Client()
		testenv.Eventually(t, 20*time.Second, func() error { // the pause arrives by way of the engine
			within, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			if frozen.Ping(within).Err() == nil {
				return fmt.Errorf("a frozen server answers")
			}
			return nil
		})
		r.Resume()
		testenv.Eventually(t, 20*time.Second, func() error { return r.Client().Ping(ctx).Err() })
		r.Stop()
	})
	t.Run("postgres", func(t *testing.T) {
		s := testenv.StartPostgresServer(t)
		db := s.Database(t)
		if _, err := db.Conn(t).Exec(t.Context(), "CREATE TABLE kept (n int)"); err != nil {
			t.Fatal(err)
		}
		s.Restart(t)
		replica := s.Replica(t)
		replica.Promote(t)
		conn, err := pgx.Connect(t.Context(), db.Follow(replica).URL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context()) //nolint:errcheck // the server goes with the test
		if _, err := conn.Exec(t.Context(), "INSERT INTO kept VALUES (1)"); err != nil {
			t.Errorf("the promoted copy: %v", err)
		}
	})
	pulls, running := e.count("POST create")
	if pulls == 0 || running != 0 {
		t.Errorf("%d containers and images made, %d still run, want some and none", pulls, running)
	}
	for id, c := range e.containers {
		if c.HostConfig.NetworkMode != "host" || c.HostConfig.Init == nil || !*c.HostConfig.Init || len(c.HostConfig.Binds) == 0 ||
			c.Image != "redis:7.0" && c.Image != "postgres:15" {
			t.Errorf("container %s: %+v", id, c)
		}
	}
}
