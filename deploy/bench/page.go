package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// The capacity page holds what a run measured between these lines; the rest of it is written by hand.
const pageBegin, pageEnd = "<!-- measured: make capacity -->\n", "<!-- end of what was measured -->\n"

// rewritePage puts the figures of the report in the file from into the capacity page.
func rewritePage(page, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read the report (make bench writes it): %w", err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	head, rest, ok := bytes.Cut(text, []byte(pageBegin))
	_, tail, ended := bytes.Cut(rest, []byte(pageEnd))
	if !ok || !ended {
		return fmt.Errorf("%s has no lines %q and %q", page, pageBegin, pageEnd)
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(pageBegin)
	if err := r.measured(&printer{w: &b}); err != nil {
		return err
	}
	b.WriteString(pageEnd)
	b.Write(tail)
	return os.WriteFile(page, b.Bytes(), 0o644)
}

// measured is the page's part of a run: where it was made, the table, and its first row worked out.
func (r *report) measured(p *printer) error {
	ways := r.ways(planned[0])
	if ways == nil {
		return errors.New("the report is of a run without the sections limiter and proxies")
	}
	p.line("Measured %s: %s.\n", r.When.UTC().Format(time.DateOnly), words(r.Machine))
	r.capacityTable(p)
	first := ways[0]
	cores, node := planned[0]*first.gateway/1e6, planned[0]*first.redis/1e6
	p.line("\nThe first row: %.0f × %.1f µs = %.2f s of CPU per second, ÷ %.1f = %.2f, so %d gateways; %.0f × %.2f µs = %.2f of a core,",
		planned[0], first.gateway, cores, gatewayCores*mostUse, cores/gatewayCores/mostUse, first.gateways, planned[0], first.redis, node)
	p.line("÷ %.1f = %.2f, so %d Redis nodes.", mostUse, node/mostUse, first.nodes)
	return p.err
}
