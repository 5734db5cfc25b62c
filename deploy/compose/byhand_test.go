package compose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/testenv"
)

const patient = 60 * time.Second

// byHand runs the services of compose.yaml as processes of this machine: the same programs, arguments and files, with the names of
// hosts and the paths of mounts translated.
type byHand struct {
	*types.Project
	bin   string            // our programs
	hosts map[string]string // "redis-eu:6379" to where that is here
}

func startByHand(t *testing.T) *byHand {
	t.Helper()
	h := &byHand{Project: project(t), bin: t.TempDir(), hosts: map[string]string{}}
	build := exec.Command("go", "build", "-o", h.bin+string(filepath.Separator), "partidor.dev/partidor/gateway/cmd/gateway",
		"partidor.dev/partidor/rebalancer/cmd/rebalancer", "partidor.dev/partidor/rebalancer/cmd/partidorctl", "github.com/nats-io/nats-server/v2")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the programs: %v\n%s", err, out)
	}
	if err := os.Rename(filepath.Join(h.bin, "v2"), filepath.Join(h.bin, "nats-server")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, name := range []string{"nats-hub:4222", "nats-hub:7422", "nats-eu:4222", "nats-us:4222", "rebalancer:9180",
		"gateway-eu-1:8080", "gateway-eu-2:8080", "gateway-us-1:8080", "gateway-us-2:8080",
		"gateway-eu-1:9090", "gateway-eu-2:9090", "gateway-us-1:9090", "gateway-us-2:9090"} {
		h.hosts[name] = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	}
	orders := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "order taken") }))
	t.Cleanup(orders.Close)
	h.hosts["orders:80"] = strings.TrimPrefix(orders.URL, "http://")
	return h
}

// mounted is where a file that a service sees at target lies on this machine.
func (h *byHand) mounted(t *testing.T, service, target string) string {
	t.Helper()
	s := h.Services[service]
	for _, v := range s.Volumes {
		if v.Target == target {
			return v.Source
		}
	}
	for _, secret := range s.Secrets {
		if at := secret.Target; at == target || !filepath.IsAbs(at) && "/run/secrets/"+at == target || at == "" && "/run/secrets/"+secret.Source == target {
			return h.Secrets[secret.Source].File
		}
	}
	t.Fatalf("%s has nothing mounted at %s", service, target)
	return ""
}

var (
	secretPath = regexp.MustCompile(`/run/secrets/[\w./-]+|/etc/redis/users\.acl`)
	hostPort   = regexp.MustCompile(`\b([a-z][a-z0-9-]*):(\d+)\b`)
)

// installed writes the file that a service sees at target as it would be here, and returns its path.
func (h *byHand) installed(t *testing.T, service, target string) string {
	t.Helper()
	data, err := os.ReadFile(h.mounted(t, service, target))
	if err != nil {
		t.Fatal(err)
	}
	text := secretPath.ReplaceAllStringFunc(string(data), func(path string) string {
		from := h.mounted(t, service, path)
		if !strings.HasSuffix(from, ".url") {
			return from
		}
		return h.write(t, service, filepath.Base(from), h.translate(t, service, h.read(t, from)))
	})
	return h.write(t, service, filepath.Base(target), h.translate(t, service, text))
}

// translate puts this machine's addresses into the place of the network's names.
func (h *byHand) translate(t *testing.T, service, text string) string {
	text = secretPath.ReplaceAllStringFunc(text, func(path string) string {
		if strings.HasPrefix(path, "/run/secrets/") {
			return h.mounted(t, service, path)
		}
		return path
	})
	for _, own := range []string{"8080", "9090", "9180"} {
		if at, ok := h.hosts[service+":"+own]; ok {
			text = strings.ReplaceAll(text, "0.0.0.0:"+own, at)
		}
	}
	return hostPort.ReplaceAllStringFunc(text, func(name string) string {
		if at, ok := h.hosts[name]; ok {
			return at
		}
		return name
	})
}

func (h *byHand) write(t *testing.T, service, name, text string) string {
	t.Helper()
	dir := filepath.Join(h.WorkingDir, "run", service)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *byHand) read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func (h *byHand) redis(t *testing.T, region string) *testenv.Redis {
	t.Helper()
	service := "redis-" + region
	r := testenv.StartRedis(t, testenv.RedisFile(h.installed(t, service, "/etc/redis/redis.conf")))
	h.hosts[service+":6379"] = r.Addr
	return r
}

// nats starts a server on its file as the service's entrypoint prepares it.
func (h *byHand) nats(t *testing.T, service, target string) {
	t.Helper()
	text := h.read(t, h.installed(t, service, target))
	env := []string{"NATS_HUB=tls://" + h.hosts["nats-hub:7422"]}
	if region, ok := strings.CutPrefix(service, "nats-"); ok && region != "hub" {
		text = strings.ReplaceAll(text, "REGION", region)
		h.write(t, service, "leaf.conf", h.read(t, h.mounted(t, service, "/run/secrets/nats/leaf.conf")))
	}
	text = strings.NewReplacer("0.0.0.0:4222", h.hosts[service+":4222"], "0.0.0.0:7422", h.hosts["nats-hub:7422"], "0.0.0.0:8222", "127.0.0.1:-1").Replace(text)
	for name, value := range h.Services[service].Environment {
		if name != "NATS_HUB" {
			env = append(env, name+"="+*value)
		}
	}
	p := testenv.StartProgram(t, []string{filepath.Join(h.bin, "nats-server"), "-c", h.write(t, service, "nats.conf", text)}, env...)
	p.AwaitLine(patient, func(line []byte) bool { return bytes.Contains(line, []byte("Server is ready")) })
}

// postgres starts a server with the shipped pg_hba.conf and a certificate, and runs the initialisation.
func (h *byHand) postgres(t *testing.T) {
	t.Helper()
	s := testenv.StartPostgresServer(t)
	admin := fmt.Sprintf("postgres://app@127.0.0.1:%d/postgres?sslmode=disable", s.Port)
	db, err := pgx.Connect(context.Background(), admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"ALTER SYSTEM SET ssl = on", "CREATE DATABASE partidor"} {
		if _, err := db.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	_ = db.Close(context.Background())
	info, err := os.Stat(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	for name, from := range map[string]string{"server.crt": "/run/secrets/postgres.crt", "server.key": "/run/secrets/postgres.key", "pg_hba.conf": "/etc/partidor/pg_hba.conf"} {
		text := h.read(t, h.mounted(t, "postgres", from)) + "\n"
		if name == "pg_hba.conf" {
			text = "host all app 127.0.0.1/32 trust\n" + text // this machine's administrator
		}
		path := filepath.Join(s.Dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	s.Restart(t)
	h.hosts["postgres:5432"] = fmt.Sprintf("127.0.0.1:%d", s.Port)
	script := h.mounted(t, "postgres", "/docker-entrypoint-initdb.d/init.sh")
	cmd := exec.Command(script)
	cmd.Env = append(os.Environ(), "PARTIDOR_SECRETS="+filepath.Join(h.WorkingDir, "secrets"), "PARTIDOR_ROLES="+h.mounted(t, "postgres", "/etc/partidor/roles.sql"),
		"PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", s.Port), "PGUSER=app", "PGDATABASE=partidor")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("init.sh: %v\n%s", err, out)
	}
}

// ours is the command line of a service that runs a program of ours.
func (h *byHand) ours(t *testing.T, service, program string) []string {
	t.Helper()
	s := h.Services[service]
	argv := []string{filepath.Join(h.bin, program)}
	args := append([]string(nil), s.Command...)
	if len(s.Entrypoint) > 0 {
		args = append(append([]string(nil), s.Entrypoint[1:]...), args...)
	}
	for _, arg := range args {
		switch {
		case strings.HasPrefix(arg, "/etc/partidor/"):
			arg = h.installed(t, service, arg)
		default:
			arg = h.translate(t, service, arg)
		}
		argv = append(argv, arg)
	}
	return argv
}

// once runs a service that ends by itself.
func (h *byHand) once(t *testing.T, service, program string) {
	t.Helper()
	if out, err := exec.Command(h.ours(t, service, program)[0], h.ours(t, service, program)[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", service, err, out)
	}
}

// Every service of ours, with the users, keys and permissions of the shipped files: configurations are accepted, requests are
// limited, shares move between the regions, and neither Redis nor NATS nor PostgreSQL refuses anything that is asked of them.
func TestServicesByHand(t *testing.T) {
	h := startByHand(t)
	stores := map[string]*testenv.Redis{"eu": h.redis(t, "eu"), "us": h.redis(t, "us")}
	h.nats(t, "nats-hub", "/etc/nats/nats.conf")
	for _, region := range []string{"eu", "us"} {
		h.nats(t, "nats-"+region, "/etc/nats/region.conf")
	}
	h.postgres(t)
	h.once(t, "migrate", "rebalancer")
	rebalancer := testenv.StartProgram(t, h.ours(t, "rebalancer", "rebalancer"))
	rebalancer.AwaitLine(patient, func(line []byte) bool { return bytes.Contains(line, []byte(`"msg":"leading"`)) })
	h.once(t, "regions", "partidorctl")
	h.once(t, "rules", "partidorctl")
	programs := map[string]*testenv.Program{"rebalancer": rebalancer}
	for _, name := range []string{"gateway-eu-1", "gateway-eu-2", "gateway-us-1", "gateway-us-2"} {
		// The state directory is a volume; here it is a directory of its own.
		config := h.ours(t, name, "gateway")
		path := config[len(config)-1]
		state := filepath.Dir(h.write(t, name, "state", ""))
		h.write(t, name, "gateway.yaml", strings.Replace(h.read(t, path), "/var/lib/partidor", state, 1))
		check := append(append([]string(nil), config...), "-check-config")
		if out, err := exec.Command(check[0], check[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s -check-config: %v\n%s", name, err, out)
		}
		programs[name] = testenv.StartProgram(t, config)
	}
	key := h.createKey(t)
	for name := range programs {
		if name != "rebalancer" {
			h.awaitReady(t, name)
		}
	}

	for _, name := range []string{"gateway-eu-1", "gateway-eu-2"} { // a new key is known everywhere within two seconds, not at once
		testenv.Eventually(t, patient, func() error {
			if status := h.order(t, name, key); status == http.StatusUnauthorized {
				return fmt.Errorf("%s does not know the key yet", name)
			}
			return nil
		})
	}

	// More than eu's 70/s, nothing in us: eu borrows, and the share follows.
	ctx := context.Background()
	eu := redis.NewClient(&redis.Options{Addr: stores["eu"].Addr, Username: "admin", Password: h.read(t, filepath.Join(h.WorkingDir, "secrets/redis-eu.admin"))})
	t.Cleanup(func() { _ = eu.Close() })
	seen := map[int]int{}
	testenv.Eventually(t, 2*patient, func() error {
		for range 40 {
			for _, name := range []string{"gateway-eu-1", "gateway-eu-2"} {
				seen[h.order(t, name, key)]++
			}
		}
		if share, err := eu.HGet(ctx, "rl:{shop-a}:create-order", "share").Int(); err != nil || share <= 700_000 {
			return fmt.Errorf("share of eu %d, %w; answers %v", share, err, seen)
		}
		return nil
	})
	if seen[http.StatusOK] == 0 || len(seen) > 2 {
		t.Errorf("answers %v, want 200 and 429 only", seen)
	}
	if got := h.order(t, "gateway-us-1", "no-such-key"); got != http.StatusUnauthorized {
		t.Errorf("an unknown key is answered %d", got)
	}

	for region, store := range stores {
		admin := redis.NewClient(&redis.Options{Addr: store.Addr, Username: "admin", Password: h.read(t, filepath.Join(h.WorkingDir, "secrets/redis-"+region+".admin"))})
		log, err := admin.Do(ctx, "ACL", "LOG").Slice()
		if err != nil || len(log) > 0 {
			t.Errorf("redis of %s refused %v, %v", region, log, err)
		}
		_ = admin.Close()
	}
	for name, p := range programs {
		if out := p.Output(); strings.Contains(strings.ToLower(out), "permission") {
			t.Errorf("%s was refused something:\n%s", name, out)
		}
	}
}

// createKey makes a tenant and its first key as day one does, by the service ctl.
func (h *byHand) createKey(t *testing.T) string {
	t.Helper()
	ctl := h.ours(t, "ctl", "partidorctl")
	ctl = ctl[:len(ctl)-len(h.Services["ctl"].Command)]
	var out []byte
	for _, args := range []string{"plans assign shop-a gold", "keys create shop-a --output=json"} {
		var said bytes.Buffer
		cmd := exec.Command(ctl[0], append(append(ctl[1:len(ctl):len(ctl)], strings.Fields(args)...), "--yes", "--reason=test")...)
		cmd.Stderr = &said
		var err error
		if out, err = cmd.Output(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, &said)
		}
	}
	var made struct{ Key string }
	if err := json.Unmarshal(out, &made); err != nil || made.Key == "" {
		t.Fatalf("keys create says %s, %v", out, err)
	}
	return made.Key
}

func (h *byHand) awaitReady(t *testing.T, name string) {
	t.Helper()
	testenv.Eventually(t, patient, func() error {
		resp, err := http.Get("http://" + h.hosts[name+":9090"] + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: /readyz answers %s", name, resp.Status)
		}
		return nil
	})
}

// order sends one order and returns the status of its answer.
func (h *byHand) order(t *testing.T, gateway, key string) int {
	t.Helper()
	host, _, err := net.SplitHostPort(h.hosts[gateway+":8080"])
	if err != nil || host != "127.0.0.1" {
		t.Fatalf("%s is at %s", gateway, h.hosts[gateway+":8080"])
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.hosts[gateway+":8080"]+"/orders", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
