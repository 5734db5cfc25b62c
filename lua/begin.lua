-- Begin: a new incarnation of this key in this region. KEYS, ARGV[1…6] and the reply: see rights.lua.
--
-- ARGV[7]  its number, never used before     ARGV[8]  1: the data is lost, the bucket restarts empty; 0: a mere fence
--
-- Everything kept about the peers is discarded; the floor is in force until activate. Base and floor are the recorded ones, or
-- the caller's where the record is gone.

local r = rights()
local b, number = r.b, tonumber(ARGV[7])
local known = not b.wrong and finite(redis.call('HGET', KEYS[1], 'incarnation'))
if (known and number <= known) or number < (finite(redis.call('HGET', KEYS[2], 'self')) or 0) then
  r.verdict = 'outdated'
  return report(r)
end
redis.call('DEL', KEYS[1])
b.floor = math.min(b.floor, r.base)
b.lost, b.moved, b.share, b.held = false, true, b.floor, 0
r.verdict, r.phase, r.number, r.known, r.epoch, r.heard, r.answered = 'applied', 'relearning', number, 0, 1, 0, 0
r.out, r.inn, r.ack = words('', 3), words('', 4), words('', 4)
r.waiting, b.adopted = 0, true
fit(b, r.env)
if ARGV[8] == '1' then -- a window begins as used up
  b.tokens, b.ts = 0, r.env.now
  if b.rule.algorithm ~= 0 then begin_window(b, r.env) end
end
redis.call('HSET', KEYS[1], 'share', integer(b.share), 'base', integer(r.base), 'floor', integer(b.floor), 'held', '0',
  'incarnation', integer(number), 'phase', 'relearning')
save(b, r.env)
return report(r)
