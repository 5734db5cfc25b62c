-- Region: reads and changes the region's record. It needs no bucket and no clock.
--
-- KEYS[1]  the record
-- ARGV[1]  what to do:
--   read                        nothing
--   begin number before run     a new incarnation, unless self is no longer `before` (0: there is none); it re-learns
--   first number run            the first life of this Redis: active at once, unless there is a self already
--   run before run              the server is another one and has the same data
--   active number               ends re-learning, if self is still `number`
--   void peer number            refuses lower incarnations of the peer from now on
--
-- Reply: self (0: none), phase, run. Fields of the record: see rights.lua; run is the server's run id when last confirmed.

local op = ARGV[1]
local self = tonumber(redis.call('HGET', KEYS[1], 'self') or 0)
if op == 'begin' and self == tonumber(ARGV[3]) and tonumber(ARGV[2]) > self then
  redis.call('HSET', KEYS[1], 'self', ARGV[2], 'phase', 'relearning', 'run', ARGV[4])
elseif op == 'first' and self == 0 then
  redis.call('HSET', KEYS[1], 'self', ARGV[2], 'run', ARGV[3])
elseif op == 'run' and redis.call('HGET', KEYS[1], 'run') == ARGV[2] then
  redis.call('HSET', KEYS[1], 'run', ARGV[3])
elseif op == 'active' and self == tonumber(ARGV[2]) then
  redis.call('HDEL', KEYS[1], 'phase')
elseif op == 'void' then
  local known = tonumber(redis.call('HGET', KEYS[1], 'peer:' .. ARGV[2]) or 1)
  if tonumber(ARGV[3]) > known then redis.call('HSET', KEYS[1], 'peer:' .. ARGV[2], ARGV[3]) end
end
local f = redis.call('HMGET', KEYS[1], 'self', 'phase', 'run')
return { f[1] or '0', f[2] or 'active', f[3] or '' }
