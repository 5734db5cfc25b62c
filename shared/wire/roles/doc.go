// Package roles shows, on a real NATS server, that the permissions of package wire give every role the subjects it needs and no
// others. It holds tests only.
package roles
