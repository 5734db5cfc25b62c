// Package rules keeps a gateway's snapshot up to date with what the deployment has decided: rules, plans, API keys,
// regions, which keys have moved. It is background work only; requests read the snapshot and wait for none of this.
//
//	ledger (PostgreSQL)  ─┐                                      ┌─▶ snapshot.Holder ─▶ requests
//	  polled by revision, │  Increment ─▶ check each row ─▶ apply │
//	  told by changed     ├─────────────────────────────────────▶┤
//	rules file (watched) ─┘        saved on disk ◀────────────────┘
//
// A Source reads increments; the Loader owns the loop. Words that come twice, late, out of order or not at all do no harm:
// each carries its revision, older ones are ignored, and the poll finds what an event did not bring. A row that cannot be
// enforced exactly never replaces one that can: the last good one stays, the fault is counted and logged once.
//
// When the source is away at start, the last saved snapshot serves, flagged stale; without one there is nothing to serve
// by and the gateway is not ready.
package rules
