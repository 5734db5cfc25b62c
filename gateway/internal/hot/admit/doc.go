// Package admit decides whether a request may pass: it finds the limits that hold for the request, asks the first part that
// can answer, and never fails.
//
//	snapshot ──▶ limits of the request ──▶ mode alone? ──▶ denied cache ──▶ prefetched tokens ──▶ Redis ──▶ local limiter
//	             (route, @tenant)          block,           a refusal       taken ahead by        within      or on_error,
//	                                       unlimited,       remembered      this instance         the         while Redis
//	                                       cost 0           ≤ 100 ms                              deadline    is away
//
// A decision for a known key that memory can answer takes no lock and allocates nothing.
package admit
