package app

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"partidor.dev/partidor/shared/bucket"
	"partidor.dev/partidor/shared/telemetry"
)

// findingLogEvery bounds the log lines about damaged buckets: a Redis that lost its data damages all of them.
const findingLogEvery = 10 * time.Second

// findings counts what the store finds damaged. It is told from the goroutines of decisions and does not block.
type findings struct {
	gateway  *gateway
	count    metric.Int64Counter
	lastLog  atomic.Int64 // nanoseconds since the start
	withheld atomic.Int64
}

var (
	findingBroken = metric.WithAttributes(telemetry.AttributeKind.String("broken"))
	findingLost   = metric.WithAttributes(telemetry.AttributeKind.String("lost"))
)

func newFindings(g *gateway) (*findings, error) {
	f := &findings{gateway: g}
	f.lastLog.Store(-int64(findingLogEvery))
	var err error
	f.count, err = g.meter.Int64Counter("partidor.bucket.findings", metric.WithUnit("{bucket}"),
		metric.WithDescription("Damaged buckets met: broken ones were unreadable and made anew, of lost ones a moved key's rights are missing."))
	if err == nil { // a counter that is there before it counts: alerts then see the first one
		f.count.Add(context.Background(), 0, findingBroken)
		f.count.Add(context.Background(), 0, findingLost)
	}
	return f, err
}

func (f *findings) found(b bucket.Finding) {
	kind, attr := "broken", findingBroken
	if b.Lost {
		kind, attr = "lost", findingLost
		if x := f.gateway.exchange.Load(); x != nil {
			x.Lost(b.Key)
		}
	}
	f.count.Add(context.Background(), 1, attr)
	now, last := int64(time.Since(f.gateway.started)), f.lastLog.Load()
	if now-last < int64(findingLogEvery) || !f.lastLog.CompareAndSwap(last, now) {
		f.withheld.Add(1)
		return
	}
	f.gateway.logger.Warn("bucket was damaged", "finding", kind, "key", b.Key.String(), "not_logged_before", f.withheld.Swap(0))
}
