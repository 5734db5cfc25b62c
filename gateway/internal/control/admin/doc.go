// Package admin is the gateway's other port: health, readiness, metrics, version, explanations and profiles, for those who
// run it. It listens on loopback by default. Elsewhere every path but the health checks asks for a bearer token, and
// profiles are not served at all.
package admin
