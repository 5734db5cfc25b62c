// Package limit holds the words every other part of Partidor speaks: keys, rules, revisions, shares, slices and
// decisions, with their arithmetic. It does no I/O, reads no clock and imports the standard library only.
package limit
