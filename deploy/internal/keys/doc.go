// Package keys makes every secret of a deployment on one machine: an authority and the certificates of NATS, its users' keys,
// the passwords of Redis and PostgreSQL, the tokens of the admin ports. What is there already is kept, so that a region can be
// added later and a secret is renewed by deleting its file.
//
// In production the secrets come from your own store; the names and forms are the same.
package keys
