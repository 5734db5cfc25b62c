// Package board joins what the ledger holds with what the regions report into one picture for people: every key with its
// rule, its shares, its targets and pins, and how much is offered and refused where. It is made when somebody looks, and
// kept for a moment, so that a hundred open consoles cost no more than one.
package board
