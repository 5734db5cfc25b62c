// Package advise tells regions over NATS which shares to give: wire.Advice, one stream per giving region, chunked, with
// the leader's term and cycle and the trace of the cycle.
//
// Core NATS may lose a message, so advice is repeated until the giver is seen to hold no more than its target, or the
// next cycle replaces it. Repeating is harmless: a giver gives at most its share − target, and refuses a lower term or
// cycle than it has followed. Advice that nobody follows changes nothing.
package advise
