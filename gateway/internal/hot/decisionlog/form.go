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

// form writes lines, whose fields the handbook names (deploy/docs/gateway.md), without reflection: there may be many thousands a second.
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
