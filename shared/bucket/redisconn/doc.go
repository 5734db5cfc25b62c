// Package redisconn connects to the regional Redis as people run it (standalone, Sentinel, Cluster; TLS, ACL users, unix
// sockets) with settings that are safe for a limiter: no command is repeated by the library, every wait is bounded, and a
// context's deadline is kept.
package redisconn
