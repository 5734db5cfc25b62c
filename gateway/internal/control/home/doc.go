// Package home consumes tiny limits at their home region by NATS request and reply, and serves the requests of other
// regions for those that are at home here. The rules are those of shared/rights/home.
//
// A Home is both sides. As asker it sends one request and waits, within its budget; what comes late is not used. It asks
// nobody while the home's last refusal says that no token can be there. As home it takes from the region's own store, holds a
// request for the next token if the reply still comes in time, and says so if its rights have moved on: the asker then tries
// the other regions in turn and remembers which of them decides.
//
// Where another limit of the same request refuses afterwards, the asker gives back what was admitted: the instance that admitted
// it forgets the admission and puts the tokens back, clamped to what its region may hold. It is said once and honoured once;
// lost, the tokens are lost.
package home
