package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// suite is a set of programs that belong together: those of a directory of this machine or, where they are not installed and a
// Docker engine answers, those of an image.
type suite struct{ dir, image string }

// The images, of the versions that `make deps` installs on Debian 12.
const (
	redisImage    = "redis:7.0"
	postgresImage = "postgres:15"
)

// preferContainers, set to anything, makes containers come before what is installed.
const preferContainers = "PARTIDOR_TEST_CONTAINERS"

// lookup finds name in PATH or in dirs (patterns allowed), or else an engine that can run image.
func lookup(name, image string, dirs ...string) (suite, error) {
	engine := sync.OnceValue(dockerAnswers)
	if os.Getenv(preferContainers) != "" && engine() == nil {
		return suite{image: image}, nil
	}
	if path, err := exec.LookPath(name); err == nil {
		// Other programs of PostgreSQL stand beside the real one.
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(real) == name {
			path = real
		}
		return suite{dir: filepath.Dir(path)}, nil
	}
	for _, dir := range dirs {
		matches, _ := filepath.Glob(filepath.Join(dir, name))
		for i := len(matches) - 1; i >= 0; i-- { // the newest version last in name order
			if info, err := os.Stat(matches[i]); err == nil && info.Mode()&0o111 != 0 {
				return suite{dir: filepath.Dir(matches[i])}, nil
			}
		}
	}
	if err := engine(); err != nil {
		return suite{}, fmt.Errorf("%s is not installed, and no Docker engine can run it (%w); install it with: make deps", name, err)
	}
	return suite{image: image}, nil
}

// find is lookup that fails the test.
func find(tb testing.TB, name, image string) suite {
	tb.Helper()
	s, err := lookup(name, image)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// command prepares the program called name, to work in dir as the account given (nil: ours). In a container it sees of this
// machine's files only temporary ones and those that its arguments name by their whole path.
func (s suite) command(dir string, as *syscall.Credential, name string, args ...string) (*exec.Cmd, error) {
	if s.image == "" {
		cmd := exec.Command(filepath.Join(s.dir, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		return cmd, nil
	}
	runner, err := incontainer()
	if err != nil {
		return nil, err
	}
	user := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	if as != nil {
		user = fmt.Sprintf("%d:%d", as.Uid, as.Gid)
	}
	argv := []string{"-image", s.image, "-dir", dir, "-user", user, "-mount", os.TempDir()}
	for _, a := range args {
		if _, err := os.Stat(a); err == nil && filepath.IsAbs(a) && !strings.HasPrefix(a, os.TempDir()+"/") {
			argv = append(argv, "-mount", a)
		}
	}
	cmd := exec.Command(runner, append(append(argv, name), args...)...)
	// The container lives as long as this pipe: until the command has been waited for, or this process is gone.
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return cmd, nil
}

// process is command with a guard, signals and output.
func (s suite) process(dir string, as *syscall.Credential, name string, args []string, also ...io.Writer) (*process, error) {
	cmd, err := s.command(dir, as, name, args...)
	if err != nil {
		return nil, err
	}
	p := newProcess(cmd, also...)
	p.contained = s.image != ""
	return p, nil
}

// incontainer is the path of the program of that name, built once.
var incontainer = sync.OnceValues(func() (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(here) {
		return "", errors.New("run servers in containers: own path unknown: built with -trimpath?")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("run servers in containers: %w", err)
	}
	path := filepath.Join(cache, "partidor", "incontainer")
	cmd := exec.Command("go", "build", "-o", path, "./incontainer")
	cmd.Dir = filepath.Dir(here)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build what runs servers in containers: %w\n%s", err, out)
	}
	return path, nil
})

// dockerAnswers asks the engine of DOCKER_HOST, or of the usual socket.
func dockerAnswers() error {
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		host = "unix:///var/run/docker.sock"
	}
	u, err := url.Parse(host)
	if err != nil {
		return fmt.Errorf("DOCKER_HOST: %w", err)
	}
	network, address := u.Scheme, u.Host
	if network == "unix" {
		address = u.Path
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		DisableKeepAlives: true,
	}}
	resp, err := client.Get("http://docker/_ping")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", host, resp.Status)
	}
	return nil
}
