// Package hot is the request path: it joins routing, identification, the decision, the answer and the way upstream.
//
//	address lists ─▶ guard ─▶ preflight ─▶ route ─▶ identify ─▶ shed ─▶ admit ─▶ forward
//	403              429      204          400 404  400 401     413 503 429 503  499 502 503 504
//
// Nothing of the background (NATS, PostgreSQL, control) is reached from here; rules and keys come as a snapshot.
package hot
