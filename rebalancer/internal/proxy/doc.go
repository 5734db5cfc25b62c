// Package proxy recovers what a region holds that an operator has declared dead (PROTOCOL R14): the leader acts as that
// region, key by key, under a number above all that the peers know of it.
//
//	void ─▶ every other region answers with its counters ─▶ excess over the floor ─▶ rows in the region's name ─▶ acknowledged
//
// The peers book the rows as transfers of the dead region like any other, so that it finds them in their counters should it
// ever come back, and starts from its floor. While one of the others does not answer nothing is minted. Doing it twice
// mints nothing more: the second time the counters say that the region holds its floor.
//
// Unlike a recovery after a lease, nothing here proves that the region has stopped. That is the operator's word.
package proxy
