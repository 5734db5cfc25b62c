package ledger

import (
	"encoding/json"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// Entry is one change: who, when, why, before, after.
type Entry struct {
	ID        int64           `json:"id"`
	Kind      string          `json:"kind"` // rule, tenant, api_key, region, parameter, split, pin
	At        time.Time       `json:"at"`
	Operation string          `json:"operation"`
	Tenant    string          `json:"tenant,omitempty"`
	Route     string          `json:"route,omitempty"`
	Name      string          `json:"name,omitempty"`
	Actor     string          `json:"actor"`
	Reason    string          `json:"reason,omitempty"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Revision  limit.Revision  `json:"revision,omitzero"`
	Term      int64           `json:"term,omitempty"`
	Cycle     int64           `json:"cycle,omitempty"`
}
