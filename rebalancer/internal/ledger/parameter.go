package ledger

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"partidor.dev/partidor/shared/limit"
)

// Parameter is one row of the table parameter. What names and values mean is the reader's business.
type Parameter struct {
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
	Reason    string          `json:"reason,omitempty"`
	UpdatedAt time.Time       `json:"updated_at"`
	UpdatedBy string          `json:"updated_by"`
	Revision  limit.Revision  `json:"revision"`
}

const selectParameter = `SELECT name, value, reason, updated_at, updated_by, revision_epoch, revision_number FROM parameter `

func scanParameter(row pgx.CollectableRow) (p Parameter, err error) {
	err = row.Scan(&p.Name, &p.Value, &p.Reason, &p.UpdatedAt, &p.UpdatedBy, &p.Revision.Epoch, &p.Revision.Number)
	return p, err
}
