// Package testenv starts the real servers that tests talk to: Redis, PostgreSQL and NATS, each on free ports of the
// loopback interface, in temporary directories, stopped and removed when the test ends.
//
// A server that is not installed fails the test with the command that installs it; nothing is ever skipped. Servers do
// not outlive the test binary: each is watched by a guard process that ends it when the binary is gone, however it went.
//
// Only tests import this package.
package testenv
