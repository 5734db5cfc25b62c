-- Look: reports how a key stands, settled up to now, and writes nothing. KEYS, ARGV[1…6] and the reply: see rights.lua.

return report(rights())
