package main

import "context"

// runLimiter measures every subject on one Redis.
func runLimiter(ctx context.Context, o options, r *report) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	return compete(ctx, o, s, o.loads, func(sub subject) bool { return chosen(o.only, sub.name) }, r)
}

// runShapes measures tenants as they come, few of them with most of the requests, and a tenth of the requests refused.
func runShapes(ctx context.Context, o options, r *report) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	loads := []load{{Keys: 100_000, Callers: 128, Shape: zipf}, {Keys: 10_000, Callers: 128, Shape: refusing}}
	if o.brief {
		loads = []load{{Keys: 100, Callers: 4, Shape: zipf}, {Keys: 100, Callers: 4, Shape: refusing}}
	}
	return compete(ctx, o, s, loads, func(sub subject) bool { return sub.refuses && chosen(o.only, sub.name) }, r)
}

// runCluster measures decisions on a Redis Cluster of three masters.
func runCluster(ctx context.Context, o options, r *report) error {
	s, err := startCluster(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	loads := []load{{Keys: 10_000, Callers: 128, Shape: clustered}}
	if o.brief {
		loads = []load{{Keys: 100, Callers: 4, Shape: clustered}}
	}
	return compete(ctx, o, s, loads, func(sub subject) bool { return sub.clusters && chosen(o.only, sub.name) }, r)
}

// compete measures the subjects that fit in rounds that take turns.
func compete(ctx context.Context, o options, s *server, loads []load, fits func(subject) bool, r *report) error {
	for _, l := range loads {
		samples := map[string][]sample{}
		for i := range o.rounds {
			for _, sub := range subjects() {
				if !fits(sub) {
					continue
				}
				progress("%d keys %s, %d callers, round %d: %s", l.Keys, l.Shape, l.Callers, i+1, sub.name)
				x, err := measure(ctx, s, sub, l, o.round)
				if err != nil {
					return err
				}
				samples[sub.name] = append(samples[sub.name], x)
			}
		}
		for _, sub := range subjects() {
			if xs := samples[sub.name]; len(xs) > 0 {
				r.Results = append(r.Results, result{sub.name, l, median(xs), xs})
			}
		}
	}
	return nil
}
