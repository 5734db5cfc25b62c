// Package e2e runs Partidor as it is deployed, on one machine: two regions with two gateway processes and a redis-server
// each, one rebalancer process, PostgreSQL, nats-server, and clients that speak HTTP. It is all tests; `make e2e` runs them.
package e2e
