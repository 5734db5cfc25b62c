package rules

import (
	"context"
	"fmt"
	"log/slog"
)

// The tables a fault may lie in.
const (
	tableRule      = "rate_limit_rule"
	tableTenant    = "tenant"
	tableKey       = "api_key"
	tableRegion    = "region"
	tableParameter = "parameter"
	tableSplit     = "split"
)

// Fault is one row that cannot be used.
type Fault struct {
	Table         string
	Tenant, Route string   // of a rule, a tenant or a split
	Hash          [32]byte // of an API key
	Name          string   // of a region or parameter
	Err           error
}

func (f Fault) subject() string {
	switch f.Table {
	case tableKey:
		return fmt.Sprintf("%x", f.Hash[:4]) // enough to find it, too little to use it
	case tableRule, tableSplit:
		return f.Tenant + "/" + f.Route
	case tableTenant:
		return f.Tenant
	}
	return f.Name
}

// maxLogged bounds the faults that are remembered in order to be logged once.
const maxLogged = 1000

// faultLog logs each fault once, however often its row is read again.
type faultLog struct {
	logger *slog.Logger
	seen   map[string]string // table and subject -> what was said
	silent bool
}

func (l *faultLog) report(ctx context.Context, faults []Fault) {
	for _, f := range faults {
		id, text := f.Table+" "+f.subject(), f.Err.Error()
		if l.seen[id] == text {
			continue
		}
		if l.seen == nil {
			l.seen = make(map[string]string)
		}
		if _, known := l.seen[id]; !known && len(l.seen) >= maxLogged {
			if !l.silent {
				l.silent = true
				l.logger.ErrorContext(ctx, "too many faulty rows, further ones are only counted", "logged", maxLogged)
			}
			continue
		}
		l.seen[id] = text
		l.logger.ErrorContext(ctx, "row refused, the last good state of it stays in force", "table", f.Table, "row", f.subject(), "error", text)
	}
}
