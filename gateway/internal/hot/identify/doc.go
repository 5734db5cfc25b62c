// Package identify tells who sent a request: the tenant that its credential stands for, and the address of the client
// behind any trusted proxies. There is one parser for credentials and one for forwarded addresses; whatever could be read
// in two ways is refused rather than guessed. Nothing here remembers a caller.
package identify
