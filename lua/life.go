package lua

import _ "embed" // for the script file

//go:embed life.lua
var life string

// Life tells when the data of a server was lost; life.lua describes keys, arguments and reply.
var Life = compose(life)
