package lua

import _ "embed" // for the script file

//go:embed life.lua
var life string

// Life tells when the data of a server was lost; life.lua describes keys, arguments and reply.
var Life = compose(life)

//go:embed source.lua
var source string

// Source tells which generation of sources of rules is in force; source.lua describes keys, arguments and reply.
var Source = source
