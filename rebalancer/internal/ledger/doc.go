// Package ledger is the rebalancer's memory: rules, tenants, regions, splits, parameters and their history.
//
// It has two forms behind the same consumers' interfaces: Postgres, the ledger proper, whose schema is in migrations/ and
// whose triggers revision and record every change, also those typed into psql; and Memory, for the demo, the simulator and
// set-ups whose rules come from a file, which forgets everything when the process ends.
//
// Every write of a leader carries its fencing term and fails with ErrFenced once another rebalancer has taken over.
package ledger
