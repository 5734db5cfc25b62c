// Package life notices when the regional Redis has lost data: a restart without persistence, an old copy restored, a replica
// promoted before it had everything, FLUSHALL. Buckets that are missing then are not taken for full ones.
//
// A server tells its run by a random id. Which run the data belongs to is written into the data itself (lua/life.lua) and
// compared at every new connection, before the connection is used: a server that comes back is recognised before its first
// decision (the call that opened the connection fails, and the fallback decides). Once a second it is compared anyway, for
// losses that close no connection.
//
// In a cluster every master has a record of its own. A loss of one of them counts for all: buckets elsewhere are not missing, so
// nothing changes for them.
package life
