//go:build race

package modelcheck

// raced: the race detector makes searches ten times slower, and they have one goroutine each.
const raced = true
