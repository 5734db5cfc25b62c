// Package admit decides whether a request may pass: it finds the limits that hold for the request, asks the first part that
// can answer, and never fails.
//
//	snapshot ──▶ limits of the request ──▶ mode alone? ──▶ denied cache ──▶ prefetched tokens ──▶ Redis ──▶ local limiter
//	             (route, @tenant)          block,           a refusal       taken ahead by        within      or on_error,
//	                                       unlimited,       remembered      this instance         the         while Redis
//	                                       cost 0           ≤ 100 ms                              deadline    is away
//
// A decision for a known key that memory can answer takes no lock and allocates nothing.
//
// What goes wrong with Redis, and what becomes of it (faults_test.go, each on a real server):
//
//	killed, restarted        fallback until three trials in a row succeed; trials every 0.25 to 5 s, also without requests
//	paused, black hole       a request waits for the deadline at most; the breaker opens; then none waits
//	slow                     an answer from the deadline on counts as none: the same; connections and goroutines stay bounded
//	demoted (READONLY)       the same; a new master is used as soon as the client knows it
//	reply lost               never asked again: at most what the request cost is lost, never taken twice
//	one node of a cluster    its keys alone are decided locally
//	scripts forgotten        sent again by the store; no request notices
//	scripts forbidden        an outage, for nothing can be decided: fallback, loudly; SCRIPT alone is not needed
//	data lost                buckets start with what has come since (package life); tokens on hand are dropped
//	clients hang up          nothing: a decision outlives its client
//
// What the fallback admits is settled with the first take afterwards, after a trial that asks for nothing; a debt whose
// settling gets no answer is let go, and counted.
package admit
