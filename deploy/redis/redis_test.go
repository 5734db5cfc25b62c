package redis_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/bucket/redisconn"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights"
	"partidor.dev/partidor/shared/rights/redisstore"
	"partidor.dev/partidor/shared/testenv"
)

const patient = 30 * time.Second

// users are the accounts of users.acl; in these tests each has its name as its password.
var users = []string{"partidor", "replica", "sentinel", "admin"}

// accounts writes users.acl with passwords filled in, as an operator does, and returns its path.
func accounts(t *testing.T) string {
	t.Helper()
	text := read(t, "users.acl")
	for _, u := range users {
		sum := sha256.Sum256([]byte(u))
		text = strings.Replace(text, strings.ToUpper(u)+"_SHA256", hex.EncodeToString(sum[:]), 1)
	}
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// start runs the real server on the shipped file.
func start(t *testing.T, acl string) *testenv.Redis {
	t.Helper()
	conf, err := filepath.Abs("redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	return testenv.StartRedis(t, testenv.RedisFile(conf), testenv.RedisConfig("aclfile", acl))
}

func as(t *testing.T, addr, user string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: user, MaxRetries: -1, DialTimeout: patient, ReadTimeout: patient})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func gateway(t *testing.T, addr string) redis.UniversalClient {
	t.Helper()
	c, err := redisconn.New(redisconn.Options{Addrs: []string{addr}, Username: "partidor", Password: "partidor", OpTimeout: patient, DialTimeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The server keeps what it was told over a restart, evicts nothing and lets nobody in without a password.
func TestServer(t *testing.T) {
	s := start(t, accounts(t))
	ctx, admin := context.Background(), as(t, s.Addr, "admin")
	for name, want := range map[string]string{
		"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "maxmemory": "536870912", "save": "",
		"replica-read-only": "yes", "replica-serve-stale-data": "no",
	} {
		if got := admin.ConfigGet(ctx, name).Val()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if err := s.Client().Ping(ctx).Err(); err == nil {
		t.Error("somebody without a password was let in")
	}
	if err := admin.HSet(ctx, "rl:{shop-a}:create-order", "tokens", "7").Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Restart()
	admin = as(t, s.Addr, "admin")
	var got string
	testenv.Eventually(t, patient, func() (err error) { // it may still be loading
		got, err = admin.HGet(ctx, "rl:{shop-a}:create-order", "tokens").Result()
		return err
	})
	if got != "7" {
		t.Errorf("after a restart the bucket holds %q, want 7", got)
	}
}

// A gateway's whole work on buckets and rights, as the user it has here: nothing is refused, nothing is warned about.
func TestGatewayUserSuffices(t *testing.T) {
	s := start(t, accounts(t))
	ctx, client := context.Background(), gateway(t, s.Addr)
	warnings, err := redisconn.Check(ctx, client)
	if err != nil || len(warnings) > 0 {
		t.Errorf("check: %v, warnings %q", err, warnings)
	}

	takes := bucket.NewRedis(bucket.Options{Client: client, CallTimeout: patient})
	t.Cleanup(takes.Close)
	key := limit.Key{Tenant: "shop-a", Route: "create-order"}
	lim := bucket.Limit{Key: key, Rule: &limit.Rule{Capacity: 100, Refill: 10, PeriodSeconds: 1}, Base: 700_000, Cost: 1}
	for _, alg := range []limit.Algorithm{limit.TokenBucket, limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter} {
		l, rule := lim, *lim.Rule
		l.Key.Route = fmt.Sprintf("r-%v", alg)
		if rule.Algorithm = alg; alg != limit.TokenBucket {
			rule.WindowSeconds, rule.Refill = 60, 0
		}
		l.Rule = &rule
		for range 3 {
			if _, err := takes.Take(ctx, []bucket.Limit{l}); err != nil {
				t.Errorf("%v: %v", alg, err)
			}
		}
	}

	store := redisstore.New(redisstore.Options{Client: client, Peers: []string{"us"}})
	if _, err := store.BeginRegion(ctx, 1, "run"); err != nil {
		t.Error("begin a life: ", err)
	}
	for _, op := range []rights.Op{rights.OpLook, rights.OpGive, rights.OpLend, rights.OpAcknowledge, rights.OpApply, rights.OpBegin, rights.OpVoid, rights.OpLearn, rights.OpActivate} {
		for _, r := range store.Do(ctx, []redisstore.Task{{Step: rights.Step{Op: op, Key: key, Peer: "us", Amount: 1}, Limit: lim}}) {
			if r.Err != nil && redis.HasErrorPrefix(r.Err, "NOPERM") {
				t.Errorf("%v: %v", op, r.Err)
			}
		}
	}
	if _, errs := store.Read(ctx, []limit.Key{key}); errs[0] != nil {
		t.Error("read rights: ", errs[0])
	}
	if err := store.Moved(ctx, func([]limit.Key) error { return nil }); err != nil {
		t.Error("read the index: ", err)
	}
	for _, line := range denied(t, s.Addr) {
		t.Error("the server refused ", line)
	}
}

// denied is what the server has refused to anybody so far.
func denied(t *testing.T, addr string) (lines []string) {
	t.Helper()
	entries, err := as(t, addr, "admin").Do(context.Background(), "ACL", "LOG").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		lines = append(lines, fmt.Sprint(e))
	}
	return lines
}

// forbidden is how Redis 7 says no, by itself and inside scripts.
var forbidden = regexp.MustCompile(`NOPERM|command not allowed|can't (access|run)`)

// Whoever has a gateway's password can still not read or stop anything but the limiter.
func TestGatewayUserCanDoNothingElse(t *testing.T) {
	s := start(t, accounts(t))
	ctx, client := context.Background(), as(t, s.Addr, "partidor")
	for _, command := range []string{
		"FLUSHALL", "FLUSHDB", "KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "CONFIG GET *", "CONFIG SET maxmemory 1", "DEBUG SLEEP 0", "SHUTDOWN NOSAVE",
		"ACL LIST", "ACL SETUSER x on", "REPLICAOF 192.0.2.1 6379", "MONITOR", "CLIENT LIST", "CLIENT KILL TYPE normal", "SCRIPT FLUSH", "SCRIPT KILL", "FUNCTION LIST",
		"SAVE", "BGREWRITEAOF", "MIGRATE 192.0.2.1 6379 rl:a 0 1000", "RESTORE rl:a 0 x", "DUMP rl:a", "RENAME rl:a rl:b", "SET rl:a 1", "GET rl:a",
		"PUBLISH a b", "SUBSCRIBE a", "MODULE LIST", "SWAPDB 0 1", "SELECT 1",
		"HGETALL session:1", "HSET session:1 a b", "DEL session:1",
		"EVAL return(redis.call('hgetall','session:1')) 0", "EVAL return(redis.call('flushall')) 0", "EVAL return(redis.call('hgetall',KEYS[1])) 1 session:1",
	} {
		var args []any
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		if err := client.Do(ctx, args...).Err(); err == nil || !forbidden.MatchString(err.Error()) {
			t.Errorf("%s: %v, want it to be forbidden", command, err)
		}
	}
}

// sentByClient are the commands that gateways send themselves; all others come from scripts.
var sentByClient = map[string]string{
	"hello": "every connection", "auth": "every connection", "ping": "readiness", "client|setname": "every connection",
	"info": "which life of the server this is", "eval": "scripts", "evalsha": "scripts",
	"script|load": "scripts", "hgetall": "explain", "sadd": "index of moved keys", "sscan": "index of moved keys",
	"cluster|slots": "cluster client", "cluster|shards": "cluster client", "cluster|nodes": "cluster client", "readonly": "cluster client", "command": "cluster client",
}

// The list is neither longer nor shorter than what scripts and gateways call.
func TestListIsWhatIsCalled(t *testing.T) {
	want := maps.Clone(sentByClient)
	scripts, err := filepath.Glob("../../lua/*.lua")
	if err != nil || len(scripts) < 10 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	call := regexp.MustCompile(`redis\.p?call\(\s*(\S+?)[,)]`)
	for _, path := range scripts {
		for _, m := range call.FindAllStringSubmatch(read(t, path), -1) {
			name := strings.Trim(m[1], `'"`)
			if name == m[1] {
				t.Errorf("%s calls %s: a command must be written out, so that it can be granted", path, m[1])
			}
			want[strings.ToLower(name)] = path
		}
	}
	var granted []string
	for line := range strings.Lines(read(t, "users.acl")) {
		if strings.HasPrefix(line, "user partidor ") {
			for _, m := range regexp.MustCompile(`\+(\S+)`).FindAllStringSubmatch(line, -1) {
				granted = append(granted, m[1])
			}
		}
	}
	for _, name := range granted {
		if want[name] == "" {
			t.Errorf("%s is granted and never called", name)
		}
	}
	for name, by := range want {
		if !slices.Contains(granted, name) {
			t.Errorf("%s is called (%s) and not granted", name, by)
		}
	}
}

// A replica follows with an account of its own, and Sentinel finds both.
func TestReplicaAndSentinel(t *testing.T) {
	acl := accounts(t)
	primary := start(t, acl)
	host, port, _ := strings.Cut(primary.Addr, ":")
	dir := t.TempDir()
	conf := strings.Replace(read(t, "replica.conf"), "/etc/redis/redis.conf", mustAbs(t, "redis.conf"), 1)
	path := filepath.Join(dir, "replica.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	replica := testenv.StartRedis(t, testenv.RedisFile(path), testenv.RedisConfig("aclfile", acl),
		testenv.RedisConfig("replicaof", host, port), testenv.RedisConfig("masterauth", "replica"))
	ctx := context.Background()
	if err := as(t, primary.Addr, "admin").HSet(ctx, "rl:{shop-a}:create-order", "tokens", "7").Err(); err != nil {
		t.Fatal(err)
	}
	follower := as(t, replica.Addr, "admin")
	testenv.Eventually(t, patient, func() error {
		if got, err := follower.HGet(ctx, "rl:{shop-a}:create-order", "tokens").Result(); got != "7" {
			return fmt.Errorf("the replica holds %q, %w", got, err)
		}
		return nil
	})
	if err := follower.HSet(ctx, "rl:{shop-a}:create-order", "tokens", "8").Err(); err == nil {
		t.Error("a replica was written to")
	}
	if err := as(t, primary.Addr, "replica").HGetAll(ctx, "rl:{shop-a}:create-order").Err(); err == nil {
		t.Error("the replica's account reads keys by itself")
	}

	text := strings.Replace(read(t, "sentinel.conf"), "port 26379\n", "", 1)
	text = strings.Replace(text, "sentinel monitor partidor redis-0 6379 2", "sentinel monitor partidor "+host+" "+port+" 1", 1)
	text += "sentinel auth-pass partidor sentinel\n"
	path = filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := testenv.FreePort(t)
	testenv.StartProgram(t, []string{"redis-sentinel", path, "--port", fmt.Sprint(at), "--bind", "127.0.0.1", "--dir", dir})
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", at)})
	t.Cleanup(func() { _ = sentinel.Close() })
	testenv.Eventually(t, patient, func() error {
		replicas, err := sentinel.Replicas(ctx, "partidor").Result()
		if err != nil || len(replicas) != 1 || replicas[0]["master-link-status"] != "ok" {
			return fmt.Errorf("sentinel sees %v, %w", replicas, err)
		}
		return nil
	})
	for _, addr := range []string{primary.Addr, replica.Addr} {
		for _, line := range denied(t, addr) {
			if strings.Contains(line, "username sentinel") {
				t.Error("refused to sentinel: ", line)
			}
		}
	}
	// The fail-over itself: the replica becomes the master.
	if err := sentinel.Failover(ctx, "partidor").Err(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patient, func() error {
		if role := follower.Info(ctx, "replication").Val(); !strings.Contains(role, "role:master") {
			return fmt.Errorf("the replica is not promoted:\n%s", role)
		}
		return nil
	})
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
