package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// watch draws the table until ctx ends: in place twice a second on a terminal, every five seconds one below the other
// elsewhere.
func watch(ctx context.Context, out io.Writer, w *world, t *traffic) error {
	interval, clear := 5*time.Second, ""
	if isTerminal(out) {
		interval, clear = 500*time.Millisecond, "\x1b[H\x1b[2J"
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	v := &view{world: w, traffic: t, last: t.read(), at: t.start}
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			var frame bytes.Buffer
			frame.WriteString(clear)
			v.draw(&frame, now)
			if _, err := out.Write(frame.Bytes()); err != nil {
				return fmt.Errorf("draw: %w", err)
			}
		}
	}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// reading is the counters at one moment: tenant by tenant, region by region.
type reading [][][3]int64

func (t *traffic) read() reading {
	r := make(reading, len(t.accounts))
	for i, a := range t.accounts {
		for _, n := range a.regional {
			r[i] = append(r[i], [3]int64{n.offered.Load(), n.admitted.Load(), n.refused.Load()})
		}
	}
	return r
}

// view turns counters into rates between two frames.
type view struct {
	world   *world
	traffic *traffic
	last    reading
	at      time.Time
}

func (v *view) draw(out io.Writer, now time.Time) {
	elapsed, span := now.Sub(v.traffic.start), now.Sub(v.at).Seconds()
	counters := v.traffic.read()
	eu := euPart(elapsed, v.traffic.swing) * 100
	fmt.Fprintf(out, "partidor demo   %3.0f s   traffic enters %.0f %% in eu, %.0f %% in us   console %s\n\n", elapsed.Seconds(), eu, 100-eu, v.world.console)
	fmt.Fprintf(out, "%-10s %-6s %9s %9s %9s  %-26s %14s\n", "tenant", "region", "offered/s", "admitted/s", "refused/s", "share of the limit", "tokens")
	for i, a := range v.traffic.accounts {
		var sum [3]float64
		var tokens float64
		for j, r := range v.world.regions {
			var rates [3]float64
			for k := range rates {
				rates[k] = float64(counters[i][j][k]-v.last[i][j][k]) / span
				sum[k] += rates[k]
			}
			b := r.bucket(a.tenant, now)
			tokens += b.tokens
			name := a.tenant.name
			if j > 0 {
				name = ""
			}
			fmt.Fprintf(out, "%-10s %-6s %9.1f %9.1f %9.1f  %-20s %4.1f%% %6.1f / %5.1f\n",
				name, r.name, rates[0], rates[1], rates[2], bar(b.share), b.share.Percent(), b.tokens, b.capacity)
		}
		state := "limit kept"
		if excess := a.checker.Excess(); excess > tolerance {
			state = fmt.Sprintf("EXCEEDED by %.3f", excess)
		}
		fmt.Fprintf(out, "%-10s %-6s %9.1f %9.1f %9.1f  of %d/s, burst %d: %s%s %6.1f / %5d\n\n", "", "world", sum[0], sum[1], sum[2],
			a.tenant.refill, a.tenant.capacity, state, strings.Repeat(" ", max(0, 6-len(fmt.Sprint(a.tenant.refill, a.tenant.capacity)))), tokens, a.tenant.capacity)
	}
	fmt.Fprintf(out, "try: curl -i -X POST -H 'X-Api-Key: key-acme' %s/orders\n", v.world.regions[0].gateways[0])
	v.last, v.at = counters, now
}

// bar is a share as twenty characters.
func bar(s limit.Share) string {
	n := int(s.Percent()/5 + 0.5)
	return strings.Repeat("█", n) + strings.Repeat("·", 20-n)
}
