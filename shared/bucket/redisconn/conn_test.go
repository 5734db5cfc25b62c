package redisconn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"partidor.dev/partidor/shared/testenv"
)

func open(tb testing.TB, o Options) redis.UniversalClient {
	tb.Helper()
	c, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func TestValidateNamesTheField(t *testing.T) {
	for want, o := range map[string]Options{
		"addrs: at least one":         {},
		"addrs: 2 given":              {Addrs: []string{"a:1", "b:1"}},
		"master: a cluster has no":    {Addrs: []string{"a:1"}, Cluster: true, Master: "m"},
		"db: 3, a cluster":            {Addrs: []string{"a:1"}, Cluster: true, DB: 3},
		"password_file: give it or":   {Addrs: []string{"a:1"}, Password: "x", PasswordFile: "y"},
		"password_file: open":         {Addrs: []string{"a:1"}, PasswordFile: "/nowhere"},
		"tls: must be on":             {Addrs: []string{"a:1"}, CAFile: "x"},
		"cert_file: goes together":    {Addrs: []string{"a:1"}, TLS: true, CertFile: "x"},
		"ca_file: open":               {Addrs: []string{"a:1"}, TLS: true, CAFile: "/nowhere"},
		"ca_file: conn_test.go holds": {Addrs: []string{"a:1"}, TLS: true, CAFile: "conn_test.go"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Nothing is repeated, deadlines are kept, connections are bounded.
func TestNewIsSafeForALimiter(t *testing.T) {
	o := open(t, Options{Addrs: []string{"127.0.0.1:1"}}).(*redis.Client).Options()
	if o.MaxRetries > 0 || o.DialerRetries != 1 || !o.ContextTimeoutEnabled || o.PoolSize != 16 || o.MaxActiveConns != 16 || o.DialTimeout > time.Second {
		t.Errorf("options %+v", o)
	}
}

// A server that accepts and never answers costs a caller no more than its own deadline. (request-path F64)
func TestBlackHole(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c := open(t, Options{Addrs: []string{l.Addr().String()}})
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Fatal("a black hole answered")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "redis") // t.TempDir can be longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	testenv.StartRedis(t, testenv.RedisConfig("unixsocket", path))
	for _, addr := range []string{path, "unix:" + path, "unix://" + path} {
		if err := open(t, Options{Addrs: []string{addr}}).Ping(context.Background()).Err(); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// A password from a file is read again at each new connection.
func TestPasswordFile(t *testing.T) {
	server := testenv.StartRedis(t)
	ctx, admin := context.Background(), server.Client()
	setUser(t, admin, "limiter", "on", ">one", "~rl:*", "+@all")
	file := filepath.Join(t.TempDir(), "password")
	write(t, file, "one\n")
	o := Options{Addrs: []string{server.Addr}, Username: "limiter", PasswordFile: file}
	c := open(t, o)
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	setUser(t, admin, "limiter", "resetpass", ">two")
	write(t, file, "two\n")
	if err := admin.Do(ctx, "CLIENT", "KILL", "USER", "limiter").Err(); err != nil {
		t.Fatal(err)
	}
	_ = c.Ping(ctx).Err() // finds the connection closed
	if err := c.Ping(ctx).Err(); err != nil {
		t.Errorf("after the password was changed: %v", err)
	}
}

func TestTLSWithClientCertificate(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	port := testenv.FreePort(t)
	testenv.StartRedis(t, testenv.RedisConfig("tls-port", strconv.Itoa(port)), testenv.RedisConfig("tls-cert-file", at("cert.pem")),
		testenv.RedisConfig("tls-key-file", at("key.pem")), testenv.RedisConfig("tls-ca-cert-file", at("cert.pem")))
	o := Options{Addrs: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, TLS: true,
		CAFile: at("cert.pem"), CertFile: at("cert.pem"), KeyFile: at("key.pem"), TLSServer: "redis.test", DialTimeout: 5 * time.Second}
	if err := open(t, o).Ping(context.Background()).Err(); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	o.TLSServer = "another.test"
	if err := open(t, o).Ping(context.Background()).Err(); err == nil {
		t.Error("another server's name was accepted")
	}
}

// certificate writes a self-signed certificate for redis.test and its key.
func certificate(tb testing.TB, dir string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis.test"}, DNSNames: []string{"redis.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(tb, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func setUser(tb testing.TB, c *redis.Client, args ...any) {
	tb.Helper()
	if err := c.Do(context.Background(), append([]any{"ACL", "SETUSER"}, args...)...).Err(); err != nil {
		tb.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	server := testenv.StartRedis(t)
	ctx, admin := context.Background(), server.Client()
	if warnings, err := Check(ctx, open(t, Options{Addrs: []string{server.Addr}})); err != nil || len(warnings) != 0 {
		t.Fatalf("a plain server: %v, %v", warnings, err)
	}
	setUser(t, admin, "narrow", "on", ">pw", "~rl:*", "+@read", "+@scripting", "+@connection", "+info")
	_, err := Check(ctx, open(t, Options{Addrs: []string{server.Addr}, Username: "narrow", Password: "pw"}))
	if err == nil || !strings.Contains(err.Error(), "grant it ~rl:* +@read +@write") {
		t.Errorf("a user who may not write: %v", err)
	}
	setUser(t, admin, "enough", "on", ">pw", "~rl:*", "+@read", "+@write", "+@scripting", "+@connection", "+time", "-script")
	warnings, err := Check(ctx, open(t, Options{Addrs: []string{server.Addr}, Username: "enough", Password: "pw"}))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "+info") {
		t.Errorf("a user with just what is advised: %v, %v", warnings, err)
	}
	if err := admin.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	warnings, err = Check(ctx, open(t, Options{Addrs: []string{server.Addr}}))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "set maxmemory-policy noeviction") {
		t.Errorf("an evicting server: %v, %v", warnings, err)
	}
	if err := admin.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err = Check(ctx, open(t, Options{Addrs: []string{server.Addr}})); err == nil || !strings.Contains(err.Error(), "read-only replica") {
		t.Errorf("a replica: %v", err)
	}
}
