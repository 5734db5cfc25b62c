package wire

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

	"partidor.dev/partidor/shared/testenv"
)

// routes are who speaks to whom on each subject: every Subject… of the package must be here. eu and us are the gateways of
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
		return SubjectChanged
	case "SubjectUsage":
		return SubjectUsage(from)
	case "SubjectHeartbeat":
		return SubjectHeartbeat(from)
	case "SubjectAdvice":
		return SubjectAdvice(to)
	case "SubjectAsk":
		return SubjectAsk(to)
	case "SubjectTransfer":
		return SubjectTransfer(to, from)
	case "SubjectAck":
		return SubjectAck(to, from)
	case "SubjectVoid":
		return SubjectVoid(to, from)
	case "SubjectAnswer":
		return SubjectAnswer(to, from)
	case "SubjectConsume":
		return SubjectConsume(to)
	case "SubjectReturn":
		return SubjectReturn(to)
	case "SubjectHot":
		return SubjectHot(from)
	case "SubjectRenew":
		return SubjectRenew(from)
	case "SubjectGrant":
		if from == "rebalancer" {
			from = SenderControl
		}
		return SubjectGrant(to, from)
	}
	return ""
}

// Every subject of the package is in the table above, so that a new one is given to somebody.
func TestEverySubjectHasItsRoles(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
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
func guarded(t *testing.T) *testenv.NATS {
	user := func(name string, p Permissions) *server.User {
		subjects := func(list []string) *server.SubjectPermission { return &server.SubjectPermission{Allow: list} }
		u := &server.User{Username: name, Password: name, Permissions: &server.Permissions{Publish: subjects(p.Publish), Subscribe: subjects(p.Subscribe)}}
		if p.Responses {
			u.Permissions.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
		}
		return u
	}
	return testenv.StartNATS(t, func(o *server.Options) {
		o.Users = []*server.User{user("eu", GatewayPermissions("eu")), user("us", GatewayPermissions("us")), user("rebalancer", RebalancerPermissions())}
	})
}

// line is one connection and what it was refused.
type line struct {
	*nats.Conn
	refused chan error
}

func dial(t *testing.T, n *testenv.NATS, role string) *line {
	l := &line{refused: make(chan error, 100)}
	l.Conn = n.Conn(t, nats.UserInfo(role, role), nats.CustomInboxPrefix(InboxPrefix(role)),
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
	if _, err := us.Subscribe(SubjectConsume("us"), func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil || !us.settled(t) {
		t.Fatalf("us may not serve: %v", err)
	}
	if m, err := eu.Request(SubjectConsume("us"), []byte("one"), 10*time.Second); err != nil || string(m.Data) != "one" {
		t.Errorf("a request to another region: %v", err)
	}
}

func TestRolesHaveNoMore(t *testing.T) {
	n := guarded(t)
	for _, c := range []struct{ role, subject string }{
		{"eu", SubjectUsage("us")},
		{"eu", SubjectHeartbeat("us")},
		{"eu", SubjectHot("us")},
		{"eu", SubjectTransfer("ap", "us")},
		{"eu", SubjectAck("ap", "us")},
		{"eu", SubjectVoid("ap", "us")},
		{"eu", SubjectAnswer("ap", "us")},
		{"eu", SubjectRenew("us")},
		{"eu", SubjectGrant("ap", "us")},
		{"eu", SubjectGrant("us", SenderControl)},
		{"eu", SubjectAdvice("us")},
		{"eu", SubjectAdvice("eu")},
		{"eu", SubjectChanged},
		{"eu", InboxPrefix("us") + ".forged"},
		{"rebalancer", SubjectAck("eu", "us")},
		{"rebalancer", SubjectAnswer("eu", "us")},
		{"rebalancer", SubjectUsage("eu")},
		{"rebalancer", SubjectRenew("eu")},
		{"rebalancer", SubjectGrant("us", "eu")},
		{"rebalancer", SubjectConsume("eu")},
		{"rebalancer", "elsewhere"},
	} {
		l := dial(t, n, c.role)
		if err := l.Publish(c.subject, nil); err == nil && l.settled(t) {
			t.Errorf("%s may say %s", c.role, c.subject)
		}
	}
	for _, c := range []struct{ role, subject string }{
		{"eu", SubjectTransfer("us", "eu")},
		{"eu", SubjectAnswer("us", "*")},
		{"eu", SubjectConsume("us")},
		{"eu", SubjectUsage("*")},
		{"eu", InboxPrefix("us") + ".>"},
		{"eu", ">"},
		{"rebalancer", SubjectConsume("eu")},
		{"rebalancer", SubjectTransfer("*", "*")},
		{"rebalancer", ">"},
	} {
		l := dial(t, n, c.role)
		if _, err := l.SubscribeSync(c.subject); err == nil && l.settled(t) {
			t.Errorf("%s may hear %s", c.role, c.subject)
		}
	}
}
