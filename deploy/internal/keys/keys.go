package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nats-io/nkeys"
)

// Plan is what there is to make secrets for.
type Plan struct {
	// Dir is where the files go; it is made for its owner alone. The files in it may be read by all, because containers
	// have other users than the machine.
	Dir string
	// Regions by name.
	Regions []string
	// Postgres is host:port of the ledger, as the programs see it, and Options what follows "?" in its URL.
	Postgres, Options string
	// Hosts are further names and addresses that the certificates are for, such as 127.0.0.1.
	Hosts []string
}

var region = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Make writes what is missing:
//
//	ca.crt ca.key                                  the authority
//	nats-hub.crt .key, nats-REGION.crt .key, postgres.crt .key   servers, by the name they have in the network
//	rebalancer.nk, gateway-REGION.nk, leaf-REGION.nk   NATS users' seeds; nats.env holds their public keys,
//	leaf-REGION.conf, nats-REGION.env              the leaf's seed as the region's server includes it, and its gateways' public key
//	redis-REGION.USER, redis-REGION.acl            passwords, and users.acl with them filled in
//	ledger-ROLE.password, ledger-ROLE.url          PostgreSQL: owner, rebalancer, gateway, operator, backup
//	admin.token, sre.token, board.token            bearer tokens
//
// acl is the text of deploy/redis/users.acl.
func Make(p Plan, acl string) error {
	for _, r := range p.Regions {
		if !region.MatchString(r) {
			return fmt.Errorf("region %q: must be 1 to 64 letters, digits, - or _", r)
		}
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	m := maker{dir: p.Dir}
	m.certificates(p)
	m.users(p)
	m.redis(p, acl)
	for _, role := range []string{"owner", "rebalancer", "gateway", "operator", "backup"} {
		password := m.secret("ledger-" + role + ".password")
		m.file("ledger-"+role+".url", fmt.Sprintf("postgres://partidor_%s_login:%s@%s/partidor?%s\n", role, password, p.Postgres, p.Options))
	}
	for _, name := range []string{"admin", "sre", "board"} {
		m.secret(name + ".token")
	}
	return m.err
}

// maker writes files until the first error.
type maker struct {
	dir string
	err error
}

// file writes a file if it is not there, and answers what it holds then.
func (m *maker) file(name, text string) string {
	if m.err != nil {
		return ""
	}
	path := filepath.Join(m.dir, name)
	old, err := os.ReadFile(path)
	if err == nil {
		return string(old)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		m.err = err
		return ""
	}
	m.err = os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // the directory is its owner's; containers run as others
	return text
}

// secret is 32 random bytes in hex.
func (m *maker) secret(name string) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.TrimSpace(m.file(name, hex.EncodeToString(b[:])+"\n"))
}

// users makes the seeds of NATS users and a file of their public keys, as environment of the servers.
func (m *maker) users(p Plan) {
	names := []string{"rebalancer"}
	for _, r := range p.Regions {
		names = append(names, "gateway-"+r, "leaf-"+r)
	}
	var env strings.Builder
	for _, name := range names {
		pair, err := nkeys.CreateUser()
		if err != nil {
			m.err = errors.Join(m.err, err)
			return
		}
		seed, err := pair.Seed()
		if err != nil {
			m.err = errors.Join(m.err, err)
			return
		}
		kept := m.file(name+".nk", string(seed)+"\n")
		if m.err != nil {
			return
		}
		public, err := publicKey(kept)
		if err != nil {
			m.err = fmt.Errorf("%s.nk: %w", name, err)
			return
		}
		fmt.Fprintf(&env, "NATS_%s=%s\n", Variable(name), public)
		if r, ok := strings.CutPrefix(name, "gateway-"); ok {
			m.err = os.WriteFile(filepath.Join(m.dir, "nats-"+r+".env"), []byte("NATS_GATEWAY="+public+"\n"), 0o644) //nolint:gosec // a public key
		}
		if strings.HasPrefix(name, "leaf-") { // nats-server reads a leaf's seed from its configuration only
			m.err = os.WriteFile(filepath.Join(m.dir, name+".conf"), []byte("nkey: "+kept), 0o644) //nolint:gosec // as file
		}
	}
	if m.err == nil {
		m.err = os.WriteFile(filepath.Join(m.dir, "nats.env"), []byte(env.String()), 0o644) //nolint:gosec // public keys
	}
}

func publicKey(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(seed)))
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

// Variable is how a name is written in the name of an environment variable.
func Variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// redis makes the passwords of the users in users.acl and fills in their digests.
func (m *maker) redis(p Plan, acl string) {
	for _, r := range p.Regions {
		filled := acl
		for _, user := range []string{"partidor", "replica", "sentinel", "admin"} {
			sum := sha256.Sum256([]byte(m.secret("redis-" + r + "." + user)))
			filled = strings.ReplaceAll(filled, strings.ToUpper(user)+"_SHA256", hex.EncodeToString(sum[:]))
		}
		if m.err == nil { // follows the passwords, so it is written anew
			m.err = os.WriteFile(filepath.Join(m.dir, "redis-"+r+".acl"), []byte(filled), 0o644) //nolint:gosec // digests
		}
	}
}
