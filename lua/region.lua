-- Region: reads and changes the region's record. It needs no bucket.
--
-- KEYS[1]  the record
-- ARGV[1]  what to do:
--   read                        nothing
--   begin number run            a new incarnation, if the number is higher than self; it re-learns
--   active number peer number … ends re-learning, if self is still that number and no peer is known under a higher number than the
--                               one that answered; refuses lower ones from now on
--   void peer number            refuses lower incarnations of the peer from now on
--   vote peer number fences     notes that a renewal of the peer's lease is answered, unless its number is void; fences is 1 where
--                               all of the peer keeps to its floor when the lease is over, else 0
--   agree peer number silence   refuses lower incarnations of the peer from now on, but only if it fences and no renewal of it has
--                               been answered for so long, ms
--
-- Reply: self (0: none), phase, run, the peer's number as known from now on, and after agree 1 or 0. Fields of the record: see
-- rights.lua; run is the server's run id when last confirmed. vote:<r> is "when fences", ms of Redis's clock: votes and
-- agreements are one after the other here, whichever processes of the region give them.

local op = ARGV[1]
local named = op == 'void' or op == 'vote' or op == 'agree'

-- number reads a field, 0 where it is missing. A record that is no such thing is as good as lost.
local function number(field)
  local text = redis.call('HGET', KEYS[1], field)
  local x = tonumber(text or 0)
  if not x or x - x ~= 0 then
    redis.call('DEL', KEYS[1])
    return 0
  end
  return x
end

local probe = redis.pcall('HGET', KEYS[1], 'self')
if type(probe) == 'table' and string.find(probe.err or '', 'WRONGTYPE', 1, true) then redis.call('DEL', KEYS[1]) end
local known = named and number('peer:' .. ARGV[2])
local self = number('self')
local agreed = '0'

local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
if op == 'begin' and tonumber(ARGV[2]) > self then
  redis.call('HSET', KEYS[1], 'self', ARGV[2], 'phase', 'relearning', 'run', ARGV[3])
elseif op == 'active' and self == tonumber(ARGV[2]) then
  local same = true
  for i = 3, #ARGV, 2 do
    if tonumber(redis.call('HGET', KEYS[1], 'peer:' .. ARGV[i]) or 0) > tonumber(ARGV[i + 1]) then same = false end
  end
  if same then
    for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], 'peer:' .. ARGV[i], ARGV[i + 1]) end
    redis.call('HDEL', KEYS[1], 'phase')
  end
elseif op == 'void' then
  if tonumber(ARGV[3]) > known then redis.call('HSET', KEYS[1], 'peer:' .. ARGV[2], ARGV[3]) end
elseif op == 'vote' then
  if tonumber(ARGV[3]) >= known then
    redis.call('HSET', KEYS[1], 'vote:' .. ARGV[2], string.format('%.0f %s', now_ms(), ARGV[4]))
  end
elseif op == 'agree' then
  local at, fences = string.match(redis.call('HGET', KEYS[1], 'vote:' .. ARGV[2]) or '', '^(%d+) ([01])$')
  if at and fences == '1' and now_ms() - tonumber(at) > tonumber(ARGV[4]) then
    agreed = '1'
    if tonumber(ARGV[3]) > known then redis.call('HSET', KEYS[1], 'peer:' .. ARGV[2], ARGV[3]) end
  end
end
local f = redis.call('HMGET', KEYS[1], 'self', 'phase', 'run', 'peer:' .. (named and ARGV[2] or ''))
local phase = f[2] and 'relearning' or 'active'
return { f[1] or '0', phase, f[3] or '', f[4] or '0', agreed }
