// Package proxy recovers what a region holds that an operator has declared dead, or that has lost its lease (PROTOCOL R13, R14):
// the leader acts as that region, key by key, under a number that nobody has had before.
//
//	void ─▶ every other region answers with its counters ─▶ excess over the floor ─▶ rows in the region's name ─▶ acknowledged
//
// The peers book the rows as transfers of the region like any other, so that it finds them in their counters should it ever
// come back, and starts from its floor. While one of the others does not answer nothing is minted. Doing it twice mints nothing
// more: the second time the counters say that the region holds its floor.
//
// Where leases run the control plane votes on them (Voter), and minting takes everybody's agreement that the lease is over: its
// own before it takes a number, each other region's before that voids and answers. Of a region that is declared dead nothing
// proves that it has stopped. That is the operator's word.
package proxy
