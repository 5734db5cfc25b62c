package app

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// explainWithin bounds the look into Redis for one explanation.
const explainWithin = time.Second

// explanation tells why a tenant's requests to a route are decided as they are, on this instance, now.
type explanation struct {
	Tenant string `json:"tenant"`
	Route  string `json:"route"`
	Plan   string `json:"plan,omitempty"`
	Region string `json:"region"`
	// Route's own limit, and the tenant's as a whole where there is one.
	Limit       explainedLimit  `json:"limit"`
	TenantLimit *explainedLimit `json:"tenant_limit,omitempty"`
	Snapshot    struct {
		Source   string         `json:"source"`
		Revision limit.Revision `json:"revision"`
		Stale    bool           `json:"stale"`
		Shadow   bool           `json:"shadow"`
	} `json:"snapshot"`
	Degraded  bool `json:"degraded"`
	Instances int  `json:"instances"`
}

type explainedLimit struct {
	Scope    string          `json:"scope"`
	Rule     *rulesfile.Rule `json:"rule"`
	Revision limit.Revision  `json:"revision"`
	Base     limit.Share     `json:"base_share"`
	Floor    limit.Share     `json:"floor_share"`
	Moved    bool            `json:"moved"`
	Steps    []explainedStep `json:"steps"`
	// Bucket is the hash in Redis as it stands; absent means a full one.
	Key    string            `json:"redis_key"`
	Bucket map[string]string `json:"bucket,omitempty"`
	Error  string            `json:"bucket_error,omitempty"`
}

type explainedStep struct {
	Scope    string         `json:"scope"`
	Tenant   string         `json:"tenant,omitempty"`
	Route    string         `json:"route,omitempty"`
	Found    string         `json:"found"` // rule, deleted or nothing
	Revision limit.Revision `json:"revision"`
}

// explain serves GET /explain?tenant=T&route=R.
func (g *gateway) explain(w http.ResponseWriter, r *http.Request) {
	tenant, route := r.URL.Query().Get("tenant"), r.URL.Query().Get("route")
	for field, name := range map[string]string{"tenant": tenant, "route": route} {
		if err := limit.ValidateName(field, name); err != nil && name != limit.TenantRoute {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if !g.serving.Load() {
		http.Error(w, "not serving yet", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), explainWithin)
	defer cancel()
	s := g.holder.Load()
	e := explanation{Tenant: tenant, Route: route, Region: s.Region(), Degraded: g.admitter.Degraded(), Instances: g.members.Live()}
	if p, ok := s.Plan(tenant); ok {
		e.Plan = p.Plan
	}
	e.Snapshot.Source, e.Snapshot.Revision = g.loader.Status().Source, s.Revision()
	e.Snapshot.Stale, e.Snapshot.Shadow = s.Stale(), s.Shadow()
	e.Limit = g.explainLimit(ctx, s, limit.Key{Tenant: tenant, Route: route})
	if s.Lookup(tenant, limit.TenantRoute).Rule != nil && route != limit.TenantRoute {
		whole := g.explainLimit(ctx, s, limit.Key{Tenant: tenant, Route: limit.TenantRoute})
		e.TenantLimit = &whole
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(e) // the client may have gone
}

func (g *gateway) explainLimit(ctx context.Context, s *snapshot.Snapshot, key limit.Key) explainedLimit {
	m := s.Lookup(key.Tenant, key.Route)
	l := explainedLimit{Scope: m.Scope, Revision: m.Revision, Base: m.Base, Floor: m.Floor, Moved: m.Moved, Key: key.Redis()}
	for _, step := range s.Explain(key.Tenant, key.Route) {
		found := "nothing"
		switch {
		case step.Rule != nil && step.Rule.Mode == limit.Shadow:
			found = "shadow rule"
			if l.Rule == nil {
				form := rulesfile.Of(step.Tenant, step.Route, step.Rule)
				l.Rule = &form
			}
		case step.Rule != nil:
			found = "rule"
			if step.Rule == m.Rule {
				form := rulesfile.Of(step.Tenant, step.Route, step.Rule)
				l.Rule = &form
			}
		case step.Revision != limit.Revision{}:
			found = "deleted"
		}
		l.Steps = append(l.Steps, explainedStep{step.Scope, step.Tenant, step.Route, found, step.Revision})
	}
	if g.redis == nil {
		return l
	}
	var err error
	if l.Bucket, err = g.redis.HGetAll(ctx, l.Key).Result(); err != nil {
		l.Error = err.Error()
	}
	return l
}
