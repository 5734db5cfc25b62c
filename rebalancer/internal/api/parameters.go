package api

import (
	"encoding/json"
	"net/http"
	"time"

	"partidor.dev/partidor/rebalancer/internal/ledger"
	"partidor.dev/partidor/rebalancer/internal/parameter"
	"partidor.dev/partidor/shared/limit"
)

// ParameterView is a parameter with its value in force.
type ParameterView struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Default json.RawMessage `json:"default"`
	Kind    string          `json:"kind"`
	Help    string          `json:"help"`
	// The rest is of the last change, absent where the default is in force.
	Reason    string         `json:"reason,omitempty"`
	UpdatedAt time.Time      `json:"updated_at,omitzero"`
	UpdatedBy string         `json:"updated_by,omitempty"`
	Revision  limit.Revision `json:"revision,omitzero"`
}

// inForce are the values that the ledger's rows make. What is not understood is not used, as in the cycle.
func (s *Server) inForce(rows map[string]ledger.Parameter) parameter.Values {
	set := make(map[string]json.RawMessage, len(rows))
	for name, row := range rows {
		set[name] = row.Value
	}
	values, _ := s.Base.With(set)
	return values
}

func (s *Server) parameters(r *http.Request) (any, error) {
	rows, err := s.Ledger.ParameterRows(r.Context())
	if err != nil {
		return nil, err
	}
	set := make(map[string]ledger.Parameter, len(rows))
	for _, row := range rows {
		set[row.Name] = row
	}
	values := s.inForce(set)
	page := Page[ParameterView]{Items: []ParameterView{}}
	for _, d := range parameter.All() {
		v := ParameterView{Name: d.Name, Value: d.Value(values), Default: d.Value(s.Base), Kind: d.Kind, Help: d.Help}
		if row, ok := set[d.Name]; ok {
			v.Reason, v.UpdatedAt, v.UpdatedBy, v.Revision = row.Reason, row.UpdatedAt, row.UpdatedBy, row.Revision
		}
		page.Items = append(page.Items, v)
	}
	return page, nil
}

// ParameterBody is a new value.
type ParameterBody struct {
	Value  json.RawMessage `json:"value"`
	Reason string          `json:"reason,omitempty"`
}

func (s *Server) putParameter(r *http.Request) (any, error) {
	var body ParameterBody
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if len(body.Value) == 0 {
		return nil, badRequest("value", "missing")
	}
	name := r.PathValue("name")
	d, ok := parameter.Find(name)
	if !ok {
		return nil, notFound("parameter " + name)
	}
	values, err := s.Base.With(map[string]json.RawMessage{name: body.Value})
	if err != nil {
		return nil, fieldFaults(err)
	}
	// The ledger keeps one form of each value, the one that gateways read.
	return s.changeParameter(r, name, d.Value(values), body.Reason)
}

// deleteParameter goes back to the default.
func (s *Server) deleteParameter(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if _, ok := parameter.Find(name); !ok {
		return nil, notFound("parameter " + name)
	}
	return s.changeParameter(r, name, nil, r.URL.Query().Get("reason"))
}

func (s *Server) changeParameter(r *http.Request, name string, value json.RawMessage, reason string) (any, error) {
	e, err := edit(r, reason)
	if err != nil {
		return nil, err
	}
	return outdating(s, e, func() (ledger.Diff[ledger.Parameter], error) {
		return s.Ledger.PutParameter(r.Context(), e, name, value)
	})
}
