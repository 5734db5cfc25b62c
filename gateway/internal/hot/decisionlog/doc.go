// Package decisionlog writes one line of JSON for every decision, for whoever wants to know each of them: billing, disputes
// with a client, a check of the limits from outside. It is off unless configured.
//
// A line is on its way to the file as soon as the one before is written, so that a process killed at once loses next to
// nothing. No request waits for it: when the file does not keep up, lines are dropped and counted.
package decisionlog
