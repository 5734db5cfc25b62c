// Package plan decides how each key's limit should be split among the regions. It is pure: demand, splits, pins,
// parameters and now go in; target shares, the moves that lead there and the reasons come out. It does no I/O, keeps no
// state and is what the simulator runs.
//
// For each key, in this order:
//
//	demand   offered load per region (admitted + refused): the larger of a mean and a faded peak, capped at the limit
//	claim    demand + headroom·√demand, capped at the limit, so that a storm in one region weighs no more than the limit
//	fill     max-min fair water-filling of the limit over the claims, weighted by the base split
//	spare    what is left: partly in proportion to the claims, partly by the base split
//	guards   floors, pins, silent regions, a deadband against noise, a step limit against flapping
//	moves    a transport plan from the regions that hold too much to those that hold too little
//
// A silent region is unknown, not idle: it keeps the share it was last known to hold. Targets are integers in parts per
// million and always add up to exactly limit.Whole. Nothing here can break a limit: regions only ever give away what
// they hold, and the plan is advice to the givers.
package plan
