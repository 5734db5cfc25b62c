// Package observability shows that what operators look at is there: every query of the dashboards and every rule evaluates
// over a running deployment, every metric is documented, every alert has a runbook. It is all tests.
package observability
