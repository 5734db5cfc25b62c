-- Source: remembers, in the regional Redis, where the gateways of the region have their rules from, so that buckets go by another
-- source as soon as the first gateway uses it, whatever revisions the two give their rules. It needs no bucket.
--
-- KEYS[1]  the record. Fields: source, its name; generation, how many sources there were before it
-- ARGV[1]  the caller's source
-- ARGV[2]  the generation that the caller goes by; -1 while it knows none, having only begun to use its source
--
-- Reply: the generation to go by.
--
-- Who begins with another source than the one noted takes over from it; who has been at it since before loses to that, as does
-- a gateway that has not been told yet. A record that was lost is written again by those who remember it.

local f = redis.call('HMGET', KEYS[1], 'source', 'generation')
local noted, at, own = f[1], tonumber(f[2]) or 0, tonumber(ARGV[2])
if noted == ARGV[1] then
  if own <= at then return at end
elseif own < 0 then
  own = noted and at + 1 or 0
elseif noted and own <= at then
  return own
end
redis.call('HSET', KEYS[1], 'source', ARGV[1], 'generation', string.format('%.0f', own))
return own
