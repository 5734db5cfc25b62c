// Command bench measures Partidor beside its peers, in one run on one machine, and writes what it found as JSON and as Markdown,
// with the targets it reached and those it did not. Rates of a shared machine swing by half from run to run; ratios within one
// run and CPU per decision are what to read.
//
// Every subject is measured in several rounds that take turns with the other subjects' rounds, so that a noisy minute falls on
// all alike; the median round counts, and ratios are the median of the rounds' ratios. CPU is that of this process (callers
// included) and of the Redis server, from the operating system and from INFO.
package main
