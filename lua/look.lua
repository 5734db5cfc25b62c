-- Look: reports how a key stands, settled up to now. KEYS, ARGV[1…6] and the reply: see rights.lua. It writes nothing, except
-- that share which has waited long enough comes into force.

local r = rights()
if r.matured then
  redis.call('HSET', KEYS[1], 'share', integer(r.b.share), 'waiting', '0')
  save(r.b, r.env)
end
return report(r)
