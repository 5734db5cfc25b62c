// Package upkeep is what the leader does beside the cycles: it records demand once a minute, takes back temporary rules
// whose time is over, rolls recorded demand up and ages the history. Everything is fenced and may be repeated; a failure is
// logged and tried again at the next turn.
package upkeep
