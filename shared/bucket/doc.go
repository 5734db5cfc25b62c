// Package bucket decides whether a request fits its limits. The algorithms are pure (state and now in, state and
// decision out); the stores put them over Redis, where the same arithmetic runs in Lua, or over memory.
package bucket
