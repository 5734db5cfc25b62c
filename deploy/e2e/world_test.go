package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/deploy/internal/wan"
	"partidor.dev/partidor/shared/testenv"
)

// apart is what one message takes from a region to another, or to the control plane: 80 ms there and back.
const apart = 40 * time.Millisecond

// site says what one region of a world is made of.
type site struct {
	name     string
	base     int // share in parts per million
	gateways int
	durable  bool // Redis writes to disk before it answers
	cluster  bool // of Redis
	// domain is the failure domain. Where every site has one, and they are three, leases run.
	domain string
}

// control is the place of the rebalancer, beside the names of the regions.
const control = "control"

// world is a deployment whose regions are far apart. Each region, and the control plane, has a NATS server of its own; they are
// joined as a cluster whose routes are the links. PostgreSQL is reached over links too.
type world struct {
	*deployment
	sites   []site
	servers map[string]*broker
	routes  map[[2]string]*wan.Link // by the two ends, in the order of dialling
	ledgers map[string]*wan.Link
}

// broker is a NATS server of one place.
type broker struct {
	*testenv.Program
	url, cluster, config string
}

func (w *world) places() []string {
	var names []string
	for _, s := range w.sites {
		names = append(names, s.name)
	}
	return append(names, control)
}

// newWorld starts everything. seed fills the ledger before the gateways start.
func newWorld(t *testing.T, sites []site, seed func(*world)) *world {
	t.Helper()
	server := testenv.StartPostgresServer(t)
	w := &world{
		deployment: newDeployment(t, server.Database(t)), sites: sites,
		servers: map[string]*broker{}, routes: map[[2]string]*wan.Link{}, ledgers: map[string]*wan.Link{},
	}
	w.connect(t)
	w.migrate(t)
	w.db = w.postgres.Conn(t)
	var names, domains []string
	var shares []int
	for _, s := range sites {
		names, shares, domains = append(names, s.name), append(shares, s.base), append(domains, s.domain)
	}
	w.exec(t, `INSERT INTO region (name, base_share, published_share, failure_domain)
		SELECT name, base, base, domain FROM unnest($1::text[], $2::int[], $3::text[]) r (name, base, domain)`, names, shares, domains)
	seed(w)
	w.startRebalancer(t)
	for _, s := range sites {
		r := &region{place: w.place(s.name), name: s.name}
		switch {
		case s.cluster:
			r.cluster = testenv.StartRedisCluster(t)
		case s.durable:
			r.redis = testenv.StartRedis(t, testenv.RedisAppendOnly())
		default:
			r.redis = testenv.StartRedis(t)
		}
		w.regions[s.name] = r
		for i := range s.gateways {
			r.gateways = append(r.gateways, w.startGateway(t, r, fmt.Sprintf("%s-%d", s.name, i+1)))
		}
	}
	for _, g := range w.deployment.gateways() {
		w.awaitReady(t, g)
	}
	w.awaitMesh(t)
	t.Cleanup(func() { w.report(t) })
	return w
}

// connect starts the NATS servers and lays the links between them and to PostgreSQL.
func (w *world) connect(t *testing.T) {
	t.Helper()
	link := func(to string, delay time.Duration) *wan.Link {
		l, err := wan.New(to, delay)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	for i, name := range w.places() {
		b := &broker{
			url:     fmt.Sprintf("nats://127.0.0.1:%d", testenv.FreePort(t)),
			cluster: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)),
		}
		var routes []string
		for _, other := range w.places()[:i] {
			l := link(w.servers[other].cluster, apart)
			w.routes[[2]string{name, other}] = l
			routes = append(routes, fmt.Sprintf("%q", "nats://"+l.Addr()))
		}
		// Servers tell each other where others are, and would meet beside the links: what they tell is wrong.
		b.config = w.write(t, "nats-"+name+".conf", fmt.Sprintf(`
listen: %q
server_name: %s
ping_interval: "1s"
ping_max: 3
cluster: {name: partidor, listen: %q, advertise: "127.0.0.1:1", no_advertise: true, pool_size: -1, routes: [%s]}
`, strings.TrimPrefix(b.url, "nats://"), name, b.cluster, strings.Join(routes, ", ")))
		w.servers[name] = b
		w.startBroker(t, name)
		w.ledgers[name] = link(fmt.Sprintf("127.0.0.1:%d", w.postgres.Server.Port), apart/4)
	}
	w.control = w.place(control)
}

// place is what processes of one place dial.
func (w *world) place(name string) place {
	u, err := url.Parse(w.postgres.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	u.Host = w.ledgers[name].Addr()
	return place{nats: w.servers[name].url, postgres: u.String()}
}

func (w *world) startBroker(t *testing.T, name string) {
	t.Helper()
	b := w.servers[name]
	b.Program = testenv.StartProgram(w.t, []string{program("nats-server"), "-c", b.config})
	b.AwaitLine(patient, func(line []byte) bool { return strings.Contains(string(line), "Server is ready") })
}

// awaitMesh waits until every place hears every other.
func (w *world) awaitMesh(t *testing.T) {
	t.Helper()
	conns := map[string]*nats.Conn{}
	for _, name := range w.places() {
		c, err := nats.Connect(w.servers[name].url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[name] = c
	}
	for to, c := range conns {
		heard, err := c.SubscribeSync("e2e." + to)
		if err != nil {
			t.Fatal(err)
		}
		for from, o := range conns {
			testenv.Eventually(t, patient, func() error {
				if err := o.Publish("e2e."+to, []byte(from)); err != nil {
					return err
				}
				m, err := heard.NextMsg(4 * apart)
				if err != nil || string(m.Data) != from {
					return fmt.Errorf("%s does not hear %s yet: %w", to, from, err)
				}
				return nil
			})
		}
	}
}
