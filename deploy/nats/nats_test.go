package nats_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/deploy/internal/keys"
	"partidor.dev/partidor/shared/testenv"
	"partidor.dev/partidor/shared/wire"
)

const patient = 30 * time.Second

// network is the hub and the servers of both regions, each on its shipped file.
type network struct {
	dir     string
	servers map[string]*server.Server
}

// conf is a shipped file as it would be installed: the region's name and the paths of secrets filled in, the addresses those
// of this machine.
func (n *network) conf(t *testing.T, file, name, hub string) *server.Options {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(n.dir, name) }
	text := strings.NewReplacer(
		"$NATS_GATEWAY", "$NATS_GATEWAY_"+keys.Variable(name), "REGION", name,
		"/run/secrets/nats/tls.crt", at("nats-"+name+".crt"), "/run/secrets/nats/tls.key", at("nats-"+name+".key"),
		"/run/secrets/nats/ca.crt", at("ca.crt"), "include leaf.conf", "include leaf-"+name+".conf",
		"0.0.0.0:4222", "127.0.0.1:-1", "0.0.0.0:8222", "127.0.0.1:-1", "0.0.0.0:7422", "127.0.0.1:-1",
	).Replace(string(data))
	t.Setenv("NATS_HUB", hub)
	path := filepath.Join(n.dir, name+".conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	o.NoLog, o.NoSigs = true, true
	return o
}

func (n *network) start(t *testing.T, name string, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patient) {
		t.Fatalf("%s is not ready", name)
	}
	n.servers[name] = s
	return s
}

func startNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{dir: t.TempDir(), servers: map[string]*server.Server{}}
	plan := keys.Plan{Dir: n.dir, Regions: []string{"eu", "us"}, Hosts: []string{"127.0.0.1"}}
	if err := keys.Make(plan, ""); err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(filepath.Join(n.dir, "nats.env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(env)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	hub := n.start(t, "hub", n.conf(t, "hub.conf", "hub", ""))
	address := fmt.Sprintf("tls://127.0.0.1:%d", leafPort(t, hub))
	for _, region := range plan.Regions {
		n.start(t, region, n.conf(t, "region.conf", region, address))
	}
	testenv.Eventually(t, patient, func() error {
		if got := hub.NumLeafNodes(); got != 2 {
			return fmt.Errorf("the hub has %d leaves, want 2", got)
		}
		return nil
	})
	return n
}

func leafPort(t *testing.T, s *server.Server) int {
	t.Helper()
	v, err := s.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.LeafNode.Port
}

// client connects as a program of ours would.
func (n *network) client(t *testing.T, at, seed string, refused chan<- error) *nats.Conn {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(filepath.Join(n.dir, seed+".nk"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := nats.Connect(fmt.Sprintf("tls://%s", n.servers[at].Addr()), key, nats.RootCAs(filepath.Join(n.dir, "ca.crt")),
		nats.CustomInboxPrefix(wire.InboxPrefix(at)), nats.Timeout(patient),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if refused != nil {
				refused <- err
			}
		}))
	if err != nil {
		t.Fatalf("%s at %s: %v", seed, at, err)
	}
	t.Cleanup(c.Close)
	return c
}

// What the programs need is exactly what the files allow.
func TestFilesSayWhatTheRolesAre(t *testing.T) {
	n := startNetwork(t)
	options := map[string]*server.Options{}
	for _, name := range []string{"hub", "eu", "us"} {
		o, err := server.ProcessConfigFile(filepath.Join(n.dir, name+".conf"))
		if err != nil {
			t.Fatal(err)
		}
		options[name] = o
	}
	for _, c := range []struct {
		at, user string
		want     wire.Permissions
	}{
		{"hub", "NATS_REBALANCER", wire.RebalancerPermissions()},
		{"hub", "NATS_LEAF_EU", leafOf("eu")},
		{"hub", "NATS_LEAF_US", leafOf("us")},
		{"eu", "NATS_GATEWAY_EU", wire.GatewayPermissions("eu")},
		{"us", "NATS_GATEWAY_US", wire.GatewayPermissions("us")},
	} {
		i := slices.IndexFunc(options[c.at].Nkeys, func(u *server.NkeyUser) bool { return u.Nkey == os.Getenv(c.user) })
		if i < 0 {
			t.Errorf("%s has no user %s", c.at, c.user)
			continue
		}
		p := options[c.at].Nkeys[i].Permissions
		same(t, c.at+" "+c.user+" publish", p.Publish.Allow, c.want.Publish)
		same(t, c.at+" "+c.user+" subscribe", p.Subscribe.Allow, c.want.Subscribe)
		if c.want.Responses != (p.Response != nil) {
			t.Errorf("%s %s: responses %v", c.at, c.user, p.Response)
		}
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// Everything that is said between regions and rebalancer arrives, over three servers.
func TestEveryoneIsHeard(t *testing.T) {
	n := startNetwork(t)
	refused := make(chan error, 100)
	who := map[string]*nats.Conn{
		"eu": n.client(t, "eu", "gateway-eu", refused), "us": n.client(t, "us", "gateway-us", refused),
		"rebalancer": n.client(t, "hub", "rebalancer", refused),
	}
	for _, c := range []struct{ from, to, subject string }{
		{"eu", "rebalancer", wire.SubjectUsage("eu")},
		{"us", "rebalancer", wire.SubjectHeartbeat("us")},
		{"rebalancer", "eu", wire.SubjectAdvice("eu")},
		{"rebalancer", "us", wire.SubjectChanged},
		{"eu", "us", wire.SubjectAsk("us")},
		{"eu", "us", wire.SubjectTransfer("us", "eu")},
		{"us", "eu", wire.SubjectAck("eu", "us")},
		{"us", "eu", wire.SubjectVoid("eu", "us")},
		{"eu", "us", wire.SubjectAnswer("us", "eu")},
		{"eu", "rebalancer", wire.SubjectAnswer("us", "eu")},
		{"rebalancer", "eu", wire.SubjectVoid("eu", "us")},
		{"rebalancer", "eu", wire.SubjectTransfer("eu", "us")},
	} {
		sub, err := who[c.to].SubscribeSync(c.subject)
		if err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, patient, func() error { // interest takes a moment to reach the other servers
			if err := who[c.from].Publish(c.subject, []byte("word")); err != nil {
				return err
			}
			_, err := sub.NextMsg(200 * time.Millisecond)
			if err != nil {
				return fmt.Errorf("%s from %s to %s: %w", c.subject, c.from, c.to, err)
			}
			return nil
		})
		_ = sub.Unsubscribe()
	}
	if _, err := who["us"].Subscribe(wire.SubjectConsume("us"), func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patient, func() error {
		_, err := who["eu"].Request(wire.SubjectConsume("us"), []byte("one"), time.Second)
		return err
	})
	select {
	case err := <-refused:
		t.Error("refused: ", err)
	default:
	}
}

// A gateway cannot speak as another region, and neither can a region's server: the hub drops what its leaf may not say.
func TestNobodySpeaksAsAnother(t *testing.T) {
	n := startNetwork(t)
	forged := []string{
		wire.SubjectUsage("us"), wire.SubjectHeartbeat("us"), wire.SubjectTransfer("eu", "us"), wire.SubjectAck("eu", "us"),
		wire.SubjectVoid("eu", "us"), wire.SubjectAnswer("eu", "us"), wire.SubjectAdvice("us"), wire.SubjectChanged,
	}
	refused := make(chan error, 100)
	eu := n.client(t, "eu", "gateway-eu", refused)
	for _, subject := range forged {
		if err := eu.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := eu.Flush(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", subject, err)
			}
		case <-time.After(patient):
			t.Errorf("eu may say %s", subject)
		}
	}

	// A server in wrong hands: it has the region's keys and no rules of its own.
	o := n.conf(t, "region.conf", "eu", fmt.Sprintf("tls://127.0.0.1:%d", leafPort(t, n.servers["hub"])))
	o.Nkeys, o.ServerName = nil, "stolen"
	stolen := n.start(t, "stolen", o)
	testenv.Eventually(t, patient, func() error {
		if got := stolen.NumLeafNodes(); got != 1 {
			return fmt.Errorf("the stolen server has %d leaves", got)
		}
		return nil
	})
	thief, err := nats.Connect(fmt.Sprintf("tls://%s", stolen.Addr()), nats.RootCAs(filepath.Join(n.dir, "ca.crt")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(thief.Close)
	us, rebalancer := n.client(t, "us", "gateway-us", nil), n.client(t, "hub", "rebalancer", nil)
	heard := make(chan *nats.Msg, 100)
	for conn, subjects := range map[*nats.Conn][]string{
		us:         {wire.SubjectAsk("us"), wire.SubjectTransfer("us", "*"), wire.SubjectAck("us", "*"), wire.SubjectAdvice("us"), wire.SubjectChanged},
		rebalancer: {wire.SubjectUsage("*"), wire.SubjectHeartbeat("*")},
	} {
		for _, s := range subjects {
			if _, err := conn.ChanSubscribe(s, heard); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What it may say arrives; when it does, everything said before it has been dropped.
	testenv.Eventually(t, patient, func() error {
		for _, subject := range []string{wire.SubjectTransfer("us", "ap"), wire.SubjectAck("us", "ap"), wire.SubjectAdvice("us"), wire.SubjectChanged, wire.SubjectUsage("us"), wire.SubjectHeartbeat("us")} {
			_ = thief.Publish(subject, []byte("forged"))
		}
		_ = thief.Publish(wire.SubjectAsk("us"), []byte("honest"))
		for {
			select {
			case m := <-heard:
				if string(m.Data) == "honest" {
					return nil
				}
				t.Errorf("the hub let %s of a stolen server pass", m.Subject)
			case <-time.After(time.Second):
				return errors.New("nothing heard")
			}
		}
	})
}

// Without the authority's certificate, or without a key, nobody is let in.
func TestStrangers(t *testing.T) {
	n := startNetwork(t)
	for _, at := range []string{"hub", "eu"} {
		address := n.servers[at].Addr().(*net.TCPAddr)
		for name, opts := range map[string][]nats.Option{
			"no authority": {},
			"no key":       {nats.RootCAs(filepath.Join(n.dir, "ca.crt"))},
		} {
			if c, err := nats.Connect(fmt.Sprintf("tls://127.0.0.1:%d", address.Port), opts...); err == nil {
				c.Close()
				t.Errorf("%s: %s was let in", at, name)
			}
		}
	}
	key, err := nats.NkeyOptionFromSeed(filepath.Join(n.dir, "gateway-us.nk"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := nats.Connect("tls://"+n.servers["eu"].Addr().String(), key, nats.RootCAs(filepath.Join(n.dir, "ca.crt"))); err == nil {
		c.Close()
		t.Error("a gateway of us was let in by eu's server")
	}
}
