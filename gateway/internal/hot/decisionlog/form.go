package decisionlog

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/shared/limit"
)

// Line is one line of the log, for readers.
type Line struct {
	// Time is when the answer was known, TookMicros how long that took: the tokens were taken in between.
	Time       time.Time `json:"time"`
	TookMicros int64     `json:"took_us"`
	Region     string    `json:"region"`
	Instance   string    `json:"instance"`
	Tenant     string    `json:"tenant"`
	Route      string    `json:"route"`
	// Cost in tokens, of every limit of the request.
	Cost    int64  `json:"cost"`
	Outcome string `json:"outcome"`
	Source  string `json:"source"`
	// Limit is the route of the limit that Share (parts per million) and Remaining (whole tokens of the region's slice) speak of:
	// the request's own, or @tenant.
	Limit     string `json:"limit"`
	Share     int64  `json:"share"`
	Remaining int64  `json:"remaining"`
	// RetryMicros is the wait that a refused client was told.
	RetryMicros int64 `json:"retry_us"`
	// TraceID of the request's span, where it has one.
	TraceID string `json:"trace_id,omitempty"`
}

// form writes lines without reflection: there may be many thousands a second.
type form struct {
	place []byte // region and instance, the same in every line
}

func newForm(region, instance string) form {
	place := appendText([]byte(`,"region":`), region)
	place = appendText(append(place, `,"instance":`...), instance)
	return form{append(place, `,"tenant":`...)}
}

func (f form) append(b []byte, ctx context.Context, at time.Time, took time.Duration, req *admit.Request, d *limit.Decision) []byte { //nolint:revive // b comes first as in every append
	b = append(b, `{"time":"`...)
	b = at.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000000Z07:00")
	b = appendNumber(b, `","took_us":`, took.Microseconds())
	b = appendText(append(b, f.place...), req.Tenant)
	b = appendText(append(b, `,"route":`...), req.Route)
	b = appendNumber(b, `,"cost":`, req.Cost)
	b = appendText(append(b, `,"outcome":`...), d.Outcome.String())
	b = appendText(append(b, `,"source":`...), d.Source.String())
	b = appendText(append(b, `,"limit":`...), d.Key.Route)
	b = appendNumber(b, `,"share":`, int64(d.Share))
	b = appendNumber(b, `,"remaining":`, d.Remaining)
	b = appendNumber(b, `,"retry_us":`, d.RetryAfter.Microseconds())
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		b = appendText(append(b, `,"trace_id":`...), s.TraceID().String())
	}
	return append(b, "}\n"...)
}

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

// appendText writes a JSON string. Names that need no escape, nearly all, cost a look at each byte.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil { // strings always marshal
				return append(b, `""`...)
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
