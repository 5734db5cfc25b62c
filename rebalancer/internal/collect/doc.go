// Package collect turns what gateway instances report over NATS into demand per key and region.
//
// Reports are cumulative counters per instance life. The table (pure, now is an argument) keeps the last counters of each
// instance and spreads every increase over the time it took, into windows; closed windows feed the estimates that the
// plan reads. From that follows:
//
//   - a lost report costs nothing: the next one carries its increase, spread over the longer time;
//   - a repeated or overtaken report adds nothing: counters only count where they rise;
//   - a new life of an instance starts from zero; a rebalancer that has just started takes a first report as the point
//     to count from, and calls a region known only after it has listened to it for two windows;
//   - a region that says nothing is unknown; a key that a live region does not mention is idle there.
//
// Reports that cannot be true (absurd rates, clocks that run backwards, names out of bounds, a region on another's
// subject) are dropped and counted. Memory is bounded by the numbers in Options.
package collect
