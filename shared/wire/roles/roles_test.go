package roles

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/testenv/natsenv"
	"partidor.dev/partidor/shared/wire"
)

// routes are who speaks to whom on each subject: every Subject… of package wire must be here. eu and us are the gateways of
// two regions.
var routes = []struct{ name, from, to string }{
	{"SubjectChanged", "rebalancer", "eu"},
	{"SubjectUsage", "eu", "rebalancer"},
	{"SubjectHeartbeat", "eu", "rebalancer"},
	{"SubjectAdvice", "rebalancer", "us"},
	{"SubjectAsk", "eu", "us"},
	{"SubjectTransfer", "eu", "us"},
	{"SubjectAck", "eu", "us"},
	{"SubjectVoid", "eu", "us"},
	{"SubjectAnswer", "eu", "us"},
	{"SubjectConsume", "eu", "us"},
	{"SubjectReturn", "eu", "us"},
	{"SubjectHot", "eu", "eu"},
	{"SubjectRenew", "eu", "us"},
	{"SubjectRenew", "eu", "rebalancer"},
	{"SubjectGrant", "eu", "us"},
	{"SubjectGrant", "rebalancer", "us"},
}

func subjectOf(name, from, to string) string {
	switch name {
	case "SubjectChanged":
		return wire.SubjectChanged
	case "SubjectUsage":
		return wire.SubjectUsage(from)
	case "SubjectHeartbeat":
		return wire.SubjectHeartbeat(from)
	case "SubjectAdvice":
		return wire.SubjectAdvice(to)
	case "SubjectAsk":
		return wire.SubjectAsk(to)
	case "SubjectTransfer":
		return wire.SubjectTransfer(to, from)
	case "SubjectAck":
		return wire.SubjectAck(to, from)
	case "SubjectVoid":
		return wire.SubjectVoid(to, from)
	case "SubjectAnswer":
		return wire.SubjectAnswer(to, from)
	case "SubjectConsume":
		return wire.SubjectConsume(to)
	case "SubjectReturn":
		return wire.SubjectReturn(to)
	case "SubjectHot":
		return wire.SubjectHot(from)
	case "SubjectRenew":
		return wire.SubjectRenew(from)
	case "SubjectGrant":
		if from == "rebalancer" {
			from = wire.SenderControl
		}
		return wire.SubjectGrant(to, from)
	}
	return ""
}

// Every subject of the package is in the table above, so that a new one is given to somebody.
func TestEverySubjectHasItsRoles(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of package wire, %v", len(files), err)
	}
	known := map[string]bool{}
	for _, r := range routes {
		known[r.name] = true
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Subject") && !known[f.Name.Name] {
				t.Errorf("%s: %s is in no role's permissions", file, f.Name.Name)
			}
			return true
		})
	}
}

// guarded starts a server whose users have the permissions of their roles and nothing else.
func guarded(t *testing.T) *natsenv.Server {
	user := func(name string, p wire.Permissions) *server.User {
		subjects := func(list []string) *server.SubjectPermission { return &server.SubjectPermission{Allow: list} }
		u := &server.User{Username: name, Password: name, Permissions: &server.Permissions{Publish: subjects(p.Publish), Subscribe: subjects(p.Subscribe)}}
		if p.Responses {
			u.Permissions.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
		}
		return u
	}
	return natsenv.Start(t, func(o *server.Options) {
		o.Users = []*server.User{user("eu", wire.GatewayPermissions("eu")), user("us", wire.GatewayPermissions("us")), user("rebalancer", wire.RebalancerPermissions())}
	})
}

// line is one connection and what it was refused.
type line struct {
	*nats.Conn
	refused chan error
}

func dial(t *testing.T, n *natsenv.Server, role string) *line {
	l := &line{refused: make(chan error, 100)}
	l.Conn = n.Conn(t, nats.UserInfo(role, role), nats.CustomInboxPrefix(wire.InboxPrefix(role)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.refused <- err }))
	return l
}

// settled waits until the server has judged everything that was sent, and tells whether it refused anything.
func (l *line) settled(t *testing.T) bool {
	t.Helper()
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.refused:
		return false
	default:
		return l.LastError() == nil
	}
}

func TestRolesHaveWhatTheyNeed(t *testing.T) {
	n := guarded(t)
	for _, r := range routes {
		subject := subjectOf(r.name, r.from, r.to)
		to, from := dial(t, n, r.to), dial(t, n, r.from)
		sub, err := to.SubscribeSync(subject)
		if err != nil || !to.settled(t) {
			t.Errorf("%s may not hear %s: %v", r.to, subject, err)
			continue
		}
		if err := from.Publish(subject, []byte("word")); err != nil || !from.settled(t) {
			t.Errorf("%s may not say %s: %v", r.from, subject, err)
			continue
		}
		if _, err := sub.NextMsg(10 * time.Second); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
	eu, us := dial(t, n, "eu"), dial(t, n, "us")
	if _, err := us.Subscribe(wire.SubjectConsume("us"), func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil || !us.settled(t) {
		t.Fatalf("us may not serve: %v", err)
	}
	if m, err := eu.Request(wire.SubjectConsume("us"), []byte("one"), 10*time.Second); err != nil || string(m.Data) != "one" {
		t.Errorf("a request to another region: %v", err)
	}
}

func TestRolesHaveNoMore(t *testing.T) {
	n := guarded(t)
	for _, c := range []struct{ role, subject string }{
		{"eu", wire.SubjectUsage("us")},
		{"eu", wire.SubjectHeartbeat("us")},
		{"eu", wire.SubjectHot("us")},
		{"eu", wire.SubjectTransfer("ap", "us")},
		{"eu", wire.SubjectAck("ap", "us")},
		{"eu", wire.SubjectVoid("ap", "us")},
		{"eu", wire.SubjectAnswer("ap", "us")},
		{"eu", wire.SubjectRenew("us")},
		{"eu", wire.SubjectGrant("ap", "us")},
		{"eu", wire.SubjectGrant("us", wire.SenderControl)},
		{"eu", wire.SubjectAdvice("us")},
		{"eu", wire.SubjectAdvice("eu")},
		{"eu", wire.SubjectChanged},
		{"eu", wire.InboxPrefix("us") + ".forged"},
		{"rebalancer", wire.SubjectAck("eu", "us")},
		{"rebalancer", wire.SubjectAnswer("eu", "us")},
		{"rebalancer", wire.SubjectUsage("eu")},
		{"rebalancer", wire.SubjectRenew("eu")},
		{"rebalancer", wire.SubjectGrant("us", "eu")},
		{"rebalancer", wire.SubjectConsume("eu")},
		{"rebalancer", "elsewhere"},
	} {
		l := dial(t, n, c.role)
		if err := l.Publish(c.subject, nil); err == nil && l.settled(t) {
			t.Errorf("%s may say %s", c.role, c.subject)
		}
	}
	for _, c := range []struct{ role, subject string }{
		{"eu", wire.SubjectTransfer("us", "eu")},
		{"eu", wire.SubjectAnswer("us", "*")},
		{"eu", wire.SubjectConsume("us")},
		{"eu", wire.SubjectUsage("*")},
		{"eu", wire.InboxPrefix("us") + ".>"},
		{"eu", ">"},
		{"rebalancer", wire.SubjectConsume("eu")},
		{"rebalancer", wire.SubjectTransfer("*", "*")},
		{"rebalancer", ">"},
	} {
		l := dial(t, n, c.role)
		if _, err := l.SubscribeSync(c.subject); err == nil && l.settled(t) {
			t.Errorf("%s may hear %s", c.role, c.subject)
		}
	}
}
