// Package cycle is the slow loop of the leading rebalancer: every few minutes it collects demand, plans target shares,
// commits them to the ledger under its fencing term and advises the regions that must give.
//
//	refresh ─▶ collect ─▶ plan ─▶ commit ─▶ advise        one trace; its context travels with the advice
//	              ▲                                │
//	              └──── next cycle, or early: a key is refused here while its limit has room elsewhere
//
// A cycle that fails changes nothing that is in force, is counted and logged, and is tried again sooner than the next
// one is due. Nothing is advised that has not been committed.
package cycle
