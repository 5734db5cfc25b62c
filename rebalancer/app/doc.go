// Package app starts, joins and stops the parts of the rebalancer; it holds nothing else. Run may be called several times
// in one process: demonstrations and tests do.
package app
