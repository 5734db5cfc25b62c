package telemetry

// LatencyBuckets are histogram boundaries in seconds for what the request path does: fine around the 2 ms that a
// decision may add, coarse up to a slow upstream.
var LatencyBuckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
}
