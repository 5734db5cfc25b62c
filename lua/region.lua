-- Region: reads and changes the region's record. It needs no bucket and no clock.
--
-- KEYS[1]  the record
-- ARGV[1]  what to do:
--   read                        nothing
--   begin number run            a new incarnation, if the number is higher than self; it re-learns
--   active number               ends re-learning, if self is still that number
--   void peer number            refuses lower incarnations of the peer from now on
--
-- Reply: self (0: none), phase, run, and after void the peer's number as known from now on. Fields of the record: see rights.lua; run is the server's run id when last confirmed.

local op = ARGV[1]
local self = tonumber(redis.call('HGET', KEYS[1], 'self') or 0)
if op == 'begin' and tonumber(ARGV[2]) > self then
  redis.call('HSET', KEYS[1], 'self', ARGV[2], 'phase', 'relearning', 'run', ARGV[3])
elseif op == 'active' and self == tonumber(ARGV[2]) then
  redis.call('HDEL', KEYS[1], 'phase')
elseif op == 'void' then
  local known = tonumber(redis.call('HGET', KEYS[1], 'peer:' .. ARGV[2]) or 0)
  if tonumber(ARGV[3]) > known then redis.call('HSET', KEYS[1], 'peer:' .. ARGV[2], ARGV[3]) end
end
local f = redis.call('HMGET', KEYS[1], 'self', 'phase', 'run', 'peer:' .. (op == 'void' and ARGV[2] or ''))
return { f[1] or '0', f[2] or 'active', f[3] or '', f[4] or '0' }
