// Package modelcheck searches every interleaving of a small world of regions for one that admits more than the limit. It
// runs the state machine of package rights itself, not a model of it; only the network, the clock and the faults are
// modelled. A message once sent stays deliverable for ever, which covers loss, repetition, reordering and any delay.
//
// A Scope bounds the world: regions, shares in units, moves, data losses, fences, leaders, a rule change. In every state
// reached two things are checked: the level of a virtual bucket of the whole limit, fed with every admission anywhere, is
// never below zero; and once all pending messages arrive and every region is back, the shares add up to the whole and
// none is below its floor.
//
// The tests hold the scopes that must hold and, by compiling the machine with one line changed (go test -overlay), the
// mutants that must break: one for each rule of the protocol.
package modelcheck
