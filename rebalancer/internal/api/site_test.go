package api

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace/noop"

	"partidor.dev/partidor/rebalancer/internal/board"
	"partidor.dev/partidor/rebalancer/internal/collect"
	"partidor.dev/partidor/rebalancer/internal/cycle"
	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/rebalancer/internal/plan"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/testenv"
)

// heard is a collector that has heard of what the test says.
type heard struct {
	demand  []plan.Demand
	details []collect.Detail
	regions []collect.RegionStatus
}

func (h *heard) Details(time.Time, limit.Key, []string) []collect.Detail { return h.details }

func (h *heard) Demand(time.Time, []string) []plan.Demand { return h.demand }

// Survey and Loads are of the same demand, which must be in the order of names.
func (h *heard) Survey(time.Time, []string) (s collect.Survey) {
	for _, d := range h.demand {
		s.Keys = append(s.Keys, d.Key)
		for _, l := range d.Loads {
			s.Rates = append(s.Rates, collect.Rate{Offered: float32(l.Offered), Refused: float32(l.Refused)})
		}
	}
	return s
}

func (h *heard) Loads(_ time.Time, names []limit.Key, regions []string) []plan.Demand {
	out := make([]plan.Demand, len(names))
	for i, name := range names {
		out[i] = plan.Demand{Key: name, Loads: make([]plan.Load, len(regions))}
		if at, ok := slices.BinarySearchFunc(h.demand, name, func(d plan.Demand, k limit.Key) int { return collect.CompareKeys(d.Key, k) }); ok {
			out[i] = h.demand[at]
		}
	}
	return out
}

func (h *heard) Regions(time.Time) []collect.RegionStatus {
	if h.regions != nil {
		return h.regions
	}
	at := limit.Revision{Epoch: 1, Number: 1000}
	return []collect.RegionStatus{{Name: "eu", Known: true, Instances: 2, Rules: at}, {Name: "us", Known: true, Instances: 2, Rules: at}}
}

// idle is a rebalancer that follows.
type idle struct{}

func (idle) Last() cycle.Outcome { return cycle.Outcome{} }
func (idle) Term() int64         { return 0 }
func (idle) Leader() string      { return "other" }

// site is an admin port over a real ledger.
type site struct {
	*httptest.Server
	db        *pgx.Conn
	collector *heard
}

const (
	operatorToken = "operator-token"
	viewerToken   = "viewer-token"
)

func newSite(t *testing.T) *site {
	t.Helper()
	database := testenv.StartPostgres(t)
	m, err := ledger.NewMigrator(database.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	pg, err := ledger.Open(t.Context(), database.URL, 4, noop.NewTracerProvider(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	s := &site{db: database.Conn(t), collector: &heard{}}
	if _, err := s.db.Exec(t.Context(), `INSERT INTO region (name, base_share) VALUES ('eu', 700000), ('us', 300000)`); err != nil {
		t.Fatal(err)
	}
	server := &Server{Ledger: pg, Board: board.New(pg, s.collector), Rebalancer: idle{}, Leadership: idle{},
		Readiness: func() []string { return nil }, Metrics: http.NotFoundHandler(), Console: http.NotFoundHandler(), Base: parameter.Default(),
		Access: Access{Tokens: []Token{
			{Name: "olga", Role: Operator, Hash: sha256.Sum256([]byte(operatorToken))},
			{Name: "victor", Role: Viewer, Hash: sha256.Sum256([]byte(viewerToken))}}},
		Instance: "test", Version: "test", Started: time.Now(), Logger: slog.New(slog.DiscardHandler)}
	s.Server = httptest.NewServer(server.Handler())
	t.Cleanup(s.Close)
	return s
}

// as sends a request and reads the answer into into, if given.
func (s *site) as(t *testing.T, token, method, path, body string, into any, header ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= 400 && res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s %s: %d is %s, want a problem", method, path, res.StatusCode, res.Header.Get("Content-Type"))
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			t.Errorf("%s %s: %v in %s", method, path, err, data)
		}
	}
	return res.StatusCode
}

func (s *site) do(t *testing.T, method, path, body string, into any, header ...string) int {
	t.Helper()
	return s.as(t, operatorToken, method, path, body, into, header...)
}
