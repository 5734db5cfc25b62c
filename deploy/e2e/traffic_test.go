package e2e

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"partidor.dev/partidor/deploy/internal/admission"
	"partidor.dev/partidor/deploy/internal/load"
	"partidor.dev/partidor/shared/limit"
)

// flow is what one tenant's clients ask of one limit, everywhere.
type flow struct {
	tenant, route  string
	capacity, rate float64
	// load is requests per second in a region at a time since the start.
	load func(region string, at time.Duration) float64
}

// traffic is clients at work, in all regions.
type traffic struct {
	flows []flow
	start time.Time
	stop  context.CancelFunc
	sent  sync.WaitGroup
}

// paths are the routes of every gateway.
var paths = map[string]string{"create-order": "/orders", "bulk-order": "/bulk"}

// begin lets clients send until end. They take the gateways of their region in turn, those that are down as well: their requests
// are lost. What was decided is in the decision logs.
func (w *world) begin(t *testing.T, seed uint64, flows ...flow) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &traffic{flows: flows, start: time.Now(), stop: cancel}
	t.Cleanup(f.end)
	client := load.Client(3 * time.Second)
	for i, fl := range flows {
		for j, s := range w.sites {
			r := w.regions[s.name]
			for k := range s.gateways {
				f.sent.Go(func() {
					load.Run(ctx, client, f.start, load.Source{
						Request: func(ctx context.Context) (*http.Request, error) {
							req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.gateway(k).url+paths[fl.route], http.NoBody)
							if err == nil {
								req.Header.Set("X-Api-Key", "key-"+fl.tenant)
							}
							return req, err
						},
						Rate: func(at time.Duration) float64 { return fl.load(s.name, at) / float64(s.gateways) },
						Seed: seed<<16 | uint64(i<<8|j<<4|k),
					}, func(load.Result) {})
				})
			}
		}
	}
	return f
}

// end stops the clients and waits for their last answers.
func (f *traffic) end() {
	f.stop()
	f.sent.Wait()
}

// verdicts judges what all gateways have logged about each flow, and logs it.
func (w *world) verdicts(t *testing.T, f *traffic) map[string]admission.Verdict {
	t.Helper()
	all, err := admission.ReadLogs(w.decisions...)
	if err != nil {
		t.Fatal(err)
	}
	of := map[[2]string][]admission.Decision{}
	for _, d := range all {
		k := [2]string{d.Tenant, d.Route}
		of[k] = append(of[k], d)
	}
	verdicts := map[string]admission.Verdict{}
	for _, fl := range f.flows {
		decisions := of[[2]string{fl.tenant, fl.route}]
		v := admission.Judge(fl.capacity, fl.rate, decisions)
		verdicts[fl.tenant] = v
		t.Logf("%-9s %s", fl.tenant, v)
		if len(decisions) == 0 {
			t.Errorf("%s: no decision was logged", fl.tenant)
		}
		if v.Excess >= 1 {
			t.Errorf("%s: the limit was exceeded by %.2f tokens", fl.tenant, v.Excess)
		}
		if v.Beyond >= 1 {
			t.Errorf("%s: a gateway that decided by itself exceeded its slice by %.2f tokens", fl.tenant, v.Beyond)
		}
	}
	return verdicts
}

// verdict judges what all gateways have logged about a tenant's limit of the usual route since a time.
func (d *deployment) verdict(t *testing.T, tenant string, capacity, rate float64, since time.Time) admission.Verdict {
	t.Helper()
	all, err := admission.ReadLogs(d.decisions...)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(x admission.Decision) bool {
		return x.Tenant != tenant || x.Route != route || x.Time.Before(since)
	})
	v := admission.Judge(capacity, rate, all)
	if v.Excess >= 1 || v.Beyond >= 1 {
		t.Errorf("%s: more was admitted than may be: %s", tenant, v)
	}
	return v
}

// watch notes a key's shares in some regions four times a second, until the function that it returns is called, which gives
// them, in parts per million.
func (w *world) watch(t *testing.T, tenant string, regions ...string) func() [][]limit.Share {
	t.Helper()
	var series [][]limit.Share
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(time.Second / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			var now []limit.Share
			for _, r := range regions {
				if share, moved := w.regions[r].share(t, tenant); moved {
					now = append(now, share)
				}
			}
			if len(now) == len(regions) {
				series = append(series, now)
			}
		}
	})
	return func() [][]limit.Share {
		cancel()
		watching.Wait()
		return series
	}
}

// messages is how often gateways have spoken of a key to another region so far, all together.
func (w *world) messages() (n float64) {
	for _, g := range w.deployment.gateways() {
		resp, err := http.Get(g.admin + "/metrics")
		if err != nil {
			continue // it is down
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), "} ")
			if strings.HasPrefix(name, "partidor_transfer_messages_total{") || strings.HasPrefix(name, "partidor_home_asked_total{") {
				x, _ := strconv.ParseFloat(value, 64)
				n += x
			}
		}
		resp.Body.Close()
	}
	return n
}
