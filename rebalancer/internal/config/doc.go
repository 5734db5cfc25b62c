// Package config is the rebalancer's file: strict YAML, useful zero values, judged as a whole before anything starts.
//
//	listen: 127.0.0.1:9180            # admin API, console, health and metrics
//	postgres: {url_file: /run/secrets/ledger}
//	nats: {urls: ["nats://127.0.0.1:4222"]}
//	access:
//	  tokens:
//	    - {name: oncall, role: operator, sha256: …}
package config
