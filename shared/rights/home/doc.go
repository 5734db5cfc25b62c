// Package home is how tiny limits are consumed (rule R17 of the protocol), without I/O. All rights to a tiny limit sit in one
// region, all or nothing; the others send it each request and wait for the reply, within a budget:
//
//	asker                                     home
//	  ├── consume (cost, budget) ─────────────▶ take; else hold until the next token, if the reply still comes in time
//	  ◀── admitted | refused until | moved to ──┤
//
// The home debits, then replies. A reply is used once, before the asker's deadline; one that is lost or late loses the token
// and never doubles it. A refusal carries the time of the next token, before which nobody need ask again. A region that has
// handed the home on says where to.
//
// Book remembers where homes are; Hold decides how long a request may wait at the home.
package home
