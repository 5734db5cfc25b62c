// Command bench measures Partidor's limiter against its peers on one Redis, in one run, and writes what it found as JSON
// and as a Markdown table with ratios. Rates of a shared machine swing by half from run to run; ratios within one run and
// CPU per decision are what to read.
//
// Every subject is measured in several rounds that take turns with the other subjects' rounds, and the median round counts,
// so that a noisy minute falls on all alike. CPU is that of this process (callers included) and of the Redis server,
// from the operating system and from INFO.
package main
