// Package testenv starts the real servers that tests talk to: Redis and PostgreSQL, each on free ports of the
// loopback interface, in temporary directories, stopped and removed when the test ends.
//
// Redis and PostgreSQL are programs of this machine or, where they are not installed and a Docker engine answers (DOCKER_HOST, else
// the usual socket), run in containers through testcontainers-go, on Linux; PARTIDOR_TEST_CONTAINERS set to anything prefers
// containers. With neither, the test fails and names the command that installs them; nothing is ever skipped. Servers do not outlive the test binary: each is watched by a guard process that ends it when the binary is gone, however it went.
//
// Only tests import this package. NATS is in package natsenv.
package testenv
