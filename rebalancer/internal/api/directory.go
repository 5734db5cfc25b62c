package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// tenants lists them: all, of one plan, or whose ids hold q.
func (s *Server) tenants(r *http.Request) (any, error) {
	return listing(r, []string{"id", "plan", "q"}, 1, func(t ledger.Tenant) []string { return []string{t.ID} },
		func(q *query, after []string, limit int) ([]ledger.Tenant, error) {
			f := ledger.Filter{Tenant: q.text("id"), Part: q.text("q"), After: [2]string{after[0]}, Limit: limit}
			return s.Ledger.Tenants(r.Context(), f, q.text("plan"))
		})
}

// TenantBody is what can be said of a tenant.
type TenantBody struct {
	Plan   string `json:"plan"`
	Reason string `json:"reason,omitempty"`
}

func (s *Server) putTenant(r *http.Request) (any, error) {
	var body TenantBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if err := fieldFaults(limit.ValidateName("id", id)); err != nil {
		return nil, err
	}
	if body.Plan != "" {
		if err := fieldFaults(limit.ValidateName("plan", body.Plan)); err != nil {
			return nil, err
		}
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[ledger.Tenant], error) { return s.Ledger.PutTenant(r.Context(), e, id, body.Plan) })
}

func (s *Server) deleteTenant(r *http.Request) (any, error) {
	e, err := edit(r, r.URL.Query().Get("reason"))
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[ledger.Tenant], error) {
		return s.Ledger.DeleteTenant(r.Context(), e, r.PathValue("id"))
	})
}

// keys lists credentials by their digests; the keys themselves are not known.
func (s *Server) keys(r *http.Request) (any, error) {
	return listing(r, []string{"tenant", "q"}, 1, func(k ledger.APIKey) []string { return []string{k.Hash} },
		func(q *query, after []string, limit int) ([]ledger.APIKey, error) {
			return s.Ledger.Keys(r.Context(), ledger.Filter{Tenant: q.text("tenant"), Part: q.text("q"), After: [2]string{after[0]}, Limit: limit})
		})
}

// KeyBody is a credential to be made.
type KeyBody struct {
	Tenant    string     `json:"tenant"`
	Label     string     `json:"label,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Reason    string     `json:"reason,omitempty"`
}

// NewKey is a credential that has just been made. Key is shown this once and never again.
type NewKey struct {
	Key string `json:"key,omitempty"`
	ledger.APIKey
}

func (s *Server) createKey(r *http.Request) (any, error) {
	var body KeyBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if err := fieldFaults(limit.ValidateName("tenant", body.Tenant)); err != nil {
		return nil, err
	}
	if len(body.Label) > maxReason {
		return nil, badRequest("label", "too long")
	}
	if err := notOver(body.ExpiresAt); err != nil {
		return nil, err
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	key, hash := newKey()
	made, err := s.Ledger.CreateKey(r.Context(), e, hash, ledger.APIKey{Tenant: body.Tenant, Label: body.Label, ExpiresAt: body.ExpiresAt})
	return shown(e, key, made), err
}

// RotateBody says how long the old credential goes on.
type RotateBody struct {
	GraceSeconds int64  `json:"grace_seconds"`
	Reason       string `json:"reason,omitempty"`
}

func (s *Server) rotateKey(r *http.Request) (any, error) {
	var body RotateBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	const most = 90 * 24 * 3600
	if body.GraceSeconds < 0 || body.GraceSeconds > most {
		return nil, badRequest("grace_seconds", "must be from 0 to 7776000")
	}
	e, err := edit(r, body.Reason)
	if err != nil {
		return nil, err
	}
	key, hash := newKey()
	made, err := s.Ledger.RotateKey(r.Context(), e, r.PathValue("sha256"), hash, time.Duration(body.GraceSeconds)*time.Second)
	return shown(e, key, made), err
}

func (s *Server) revokeKey(r *http.Request) (any, error) {
	e, err := edit(r, r.URL.Query().Get("reason"))
	if err != nil {
		return nil, err
	}
	return s.Ledger.RevokeKey(r.Context(), e, r.PathValue("sha256"))
}

// newKey is 256 random bits behind a prefix by which scanners for leaked secrets can know it.
func newKey() (key string, hash [32]byte) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	key = "ptdr_" + base64.RawURLEncoding.EncodeToString(raw[:])
	return key, sha256.Sum256([]byte(key))
}

// shown leaves out a key that a dry run did not make.
func shown(e ledger.Edit, key string, made ledger.APIKey) NewKey {
	if e.Dry {
		return NewKey{APIKey: made}
	}
	return NewKey{Key: key, APIKey: made}
}
