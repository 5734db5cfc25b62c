// Package foreign reads the limits of other gateways, Kong's declarative files and envoy-ratelimit's, as rules of ours. What
// means something else here, or nothing, is reported rather than guessed: an import is a draft to be read by a person.
package foreign
