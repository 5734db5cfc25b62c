package cycle

import (
	"context"
	"time"

	"partidor.dev/partidor/rebalancer/internal/plan"
)

// watchEvery is how often refusals are judged: no longer than the shortest window of the collector that production has.
const watchEvery = 5 * time.Second

// watch adds up what regions refused while the world had room, whatever the plan makes of it.
func (l *reign) watch(now time.Time) {
	since := now.Sub(l.watched)
	if since < watchEvery {
		return
	}
	first := l.watched.IsZero()
	l.watched = now
	if first || l.mirror.Rules == nil {
		return
	}
	tokens := 0.0
	for _, d := range l.options.Collector.Refused(now, names(l.mirror.Regions)) {
		d.Rule = l.mirror.Rules.Lookup(d.Key, now).Rule
		tokens += plan.Waste(&d)
	}
	// After a pause, of this process or of its machine, the latest window speaks for one look only.
	l.metrics.wasted.Add(context.Background(), tokens*min(since, 2*watchEvery).Seconds())
}
