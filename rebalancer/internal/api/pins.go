package api

import (
	"net/http"
	"strings"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/shared/limit"
)

// PinBody fixes shares of a key, in parts per million. ForSeconds or ExpiresAt end it; neither means until unpinned.
type PinBody struct {
	Shares     limit.Split `json:"shares"`
	ForSeconds int64       `json:"for_seconds,omitempty"`
	ExpiresAt  *time.Time  `json:"expires_at,omitempty"`
	Reason     string      `json:"reason,omitempty"`
}

// holdSet is how long a split set by hand stays before the plan takes over again, where the caller does not say.
const holdSet = time.Hour

// putPins fixes shares of some or all regions of a key.
func (s *Server) putPins(r *http.Request) (any, error) { return s.changePins(r, "pin") }

// putSplit sets the shares of all regions: a pin of every region that ends by itself.
func (s *Server) putSplit(r *http.Request) (any, error) { return s.changePins(r, "set") }

func (s *Server) changePins(r *http.Request, operation string) (any, error) {
	var body PinBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if len(body.Shares) == 0 {
		return nil, badRequest("shares", "missing")
	}
	if operation == "set" {
		if sum := body.Shares.Sum(); sum != limit.Whole {
			_, detail, _ := strings.Cut(body.Shares.Validate().Error(), ": ")
			return nil, badRequest("shares", detail)
		}
		if body.ForSeconds == 0 && body.ExpiresAt == nil {
			body.ForSeconds = int64(holdSet / time.Second)
		}
	}
	pins := ledger.Pins{Shares: body.Shares}
	const most = 10 * 365 * 24 * 3600
	if err := notOver(body.ExpiresAt); err != nil {
		return nil, err
	}
	switch {
	case body.ForSeconds != 0 && body.ExpiresAt != nil:
		return nil, badRequest("expires_at", "give for_seconds or expires_at, not both")
	case body.ForSeconds < 0 || body.ForSeconds > most:
		return nil, badRequest("for_seconds", "must be from 1 to 315360000")
	case body.ForSeconds > 0:
		pins.Expires = time.Now().Add(time.Duration(body.ForSeconds) * time.Second).UTC().Truncate(time.Millisecond)
	case body.ExpiresAt != nil && time.Until(*body.ExpiresAt) > most*time.Second:
		return nil, badRequest("expires_at", "must be within ten years")
	case body.ExpiresAt != nil:
		pins.Expires = body.ExpiresAt.UTC()
	}
	return s.replacePins(r, pins, operation, body.Reason)
}

// deletePins gives all regions of a key back to the plan.
func (s *Server) deletePins(r *http.Request) (any, error) {
	return s.replacePins(r, ledger.Pins{}, "unpin", r.URL.Query().Get("reason"))
}

func (s *Server) replacePins(r *http.Request, pins ledger.Pins, operation, reason string) (any, error) {
	key, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	e, err := edit(r, reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[ledger.Pins], error) {
		return s.Ledger.PutPins(r.Context(), e, key, pins, operation)
	})
}

// keyOf is the key in the path.
func keyOf(r *http.Request) (limit.Key, error) {
	key := limit.Key{Tenant: r.PathValue("tenant"), Route: r.PathValue("route")}
	if err := fieldFaults(limit.ValidateName("tenant", key.Tenant)); err != nil {
		return key, err
	}
	if key.Route == limit.TenantRoute {
		return key, nil
	}
	return key, fieldFaults(limit.ValidateName("route", key.Route))
}
