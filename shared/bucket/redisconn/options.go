package redisconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options say where the regional Redis is. Zero durations and sizes mean the defaults.
type Options struct {
	// Addrs are host:port or, for a single server, a path or unix:/path of a socket. With Master they are the Sentinels'; with
	// Cluster any nodes of it.
	Addrs []string
	// Master is the name that the Sentinels watch.
	Master string
	// Cluster says that Addrs is a Redis Cluster.
	Cluster bool
	// DB selects a database; a cluster has only 0.
	DB int
	// Username and Password of an ACL user; with Password alone, the default user. PasswordFile is read at every new
	// connection, so that a rotated password needs no restart. The Sentinels may have their own.
	Username, Password, PasswordFile     string
	SentinelUsername, SentinelPassword   string
	TLS                                  bool
	CAFile, CertFile, KeyFile, TLSServer string
	// PoolSize bounds the connections per node (default 16), DialTimeout one connection attempt (100 ms), OpTimeout a
	// write, a read and the wait for a connection (500 ms).
	PoolSize               int
	DialTimeout, OpTimeout time.Duration
	// Name is what CLIENT LIST shows.
	Name string
	// Greet is called with every new connection before it is used. It must be quick; an error closes the connection, and a command that
	// was not answered must be one: the answer would be taken for that of the next command.
	Greet func(ctx context.Context, conn *redis.Conn) error
}

// Validate names everything that cannot work.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.Addrs) == 0 {
		bad("addrs: at least one")
	}
	if len(o.Addrs) > 1 && o.Master == "" && !o.Cluster {
		bad("addrs: %d given; several need cluster or a Sentinel master", len(o.Addrs))
	}
	if o.Master != "" && o.Cluster {
		bad("master: a cluster has no Sentinel master")
	}
	if o.Cluster && o.DB != 0 {
		bad("db: %d, a cluster has only 0", o.DB)
	}
	if o.Password != "" && o.PasswordFile != "" {
		bad("password_file: give it or password, not both")
	}
	if !o.TLS && (o.CAFile != "" || o.CertFile != "" || o.KeyFile != "" || o.TLSServer != "") {
		bad("tls: must be on for ca_file, cert_file, key_file and tls_server_name to mean something")
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		bad("cert_file: goes together with key_file")
	}
	return errors.Join(errs...)
}

// New makes the client; it connects when first used. Errors are those of Validate and of reading files.
func New(o Options) (redis.UniversalClient, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("redis options: %w", err)
	}
	tlsConfig, err := o.tls()
	if err != nil {
		return nil, fmt.Errorf("redis options: %w", err)
	}
	if _, _, err := o.credentials(); err != nil {
		return nil, fmt.Errorf("redis options: %w", err)
	}
	u := o.universal(tlsConfig)
	switch {
	case o.Cluster:
		c := u.Cluster()
		// Redirections mean that nothing was executed, so they are followed; everything else is left to the caller.
		c.MaxRedirects = 3
		return redis.NewClusterClient(c), nil
	case o.Master != "":
		return redis.NewFailoverClient(u.Failover()), nil
	}
	s := u.Simple()
	if path, ok := socketPath(o.Addrs[0]); ok {
		s.Network, s.Addr = "unix", path
	}
	return redis.NewClient(s), nil
}

func (o *Options) universal(t *tls.Config) *redis.UniversalOptions {
	op := orDefault(o.OpTimeout, 500*time.Millisecond)
	size := o.PoolSize
	if size <= 0 {
		size = 16
	}
	return &redis.UniversalOptions{
		Addrs: o.Addrs, MasterName: o.Master, DB: o.DB, IsClusterMode: o.Cluster, ClientName: o.Name,
		CredentialsProvider: o.provide, OnConnect: o.Greet,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		TLSConfig: t,
		// A repeated script call can charge twice: nothing is repeated here.
		MaxRetries:               -1,
		DialTimeout:              orDefault(o.DialTimeout, 100*time.Millisecond),
		DialerRetries:            1,
		ReadTimeout:              op,
		WriteTimeout:             op,
		PoolTimeout:              op,
		ContextTimeoutEnabled:    true,
		PoolSize:                 size,
		MaxActiveConns:           size,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// Nothing here needs the third version, whose pushed messages cost two looks at the socket around every command.
		Protocol: 2,
	}
}

func orDefault(v, d time.Duration) time.Duration {
	if v <= 0 {
		return d
	}
	return v
}

// provide is asked at every new connection. A password file that has become unreadable fails the authentication there.
func (o *Options) provide() (username, password string) {
	username, password, _ = o.credentials()
	return username, password
}

func (o *Options) credentials() (username, password string, err error) {
	if o.PasswordFile == "" {
		return o.Username, o.Password, nil
	}
	b, err := os.ReadFile(o.PasswordFile)
	if err != nil {
		return "", "", fmt.Errorf("password_file: %w", err)
	}
	return o.Username, strings.TrimRight(string(b), "\r\n"), nil
}

func (o *Options) tls() (*tls.Config, error) {
	if !o.TLS {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.TLSServer}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %s holds no certificate", o.CAFile)
		}
	}
	if o.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

func socketPath(addr string) (string, bool) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return strings.TrimPrefix(path, "//"), true
	}
	return addr, strings.HasPrefix(addr, "/")
}
