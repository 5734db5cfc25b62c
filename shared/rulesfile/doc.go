// Package rulesfile is the YAML form of what the ledger holds about rules: regions, rules, tenants and API keys. Gateways
// without PostgreSQL watch such a file, the rebalancer of a set-up without PostgreSQL takes its regions and rules from it,
// and partidorctl exports to it and applies it. Types, bounds and words are those of limit.Rule; every fault is reported
// with file, line and field, and a file with a fault is refused as a whole.
//
//	revision: 3                      # rises with every edit; an older file never replaces a newer one
//	regions: {eu: 70%, us: 30%}      # or parts per million; or {eu: {base: 70%, floor: 5%, domain: rack-1}}
//	default: {capacity: 20, refill_per_second: 10}
//	rules:
//	  - {tenant: shop-a, route: create-order, capacity: 200, refill_per_second: 100}
//	  - {tenant: "@gold", route: "*", capacity: 600, refill_per_second: 5, refill_period_seconds: 60}
//	tenants:
//	  - {id: shop-a, plan: gold}
//	api_keys:
//	  - {tenant: shop-a, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}
package rulesfile
