-- Activate: ends re-learning once every peer has answered. KEYS, ARGV[1…6] and the reply: see rights.lua; the peers are those of
-- ARGV[6].
--
-- share = base + what came in − what went out. "inactive": an answer is missing, or the key does not re-learn; nothing has
-- changed. The caller vouches for a live lease where leases run.

local r = rights()
if r.verdict == 'lost' then return report(r) end
local b = r.b
local phase = redis.call('HGET', KEYS[1], 'phase')
if not r.opened or phase ~= 'relearning' then
  r.verdict = 'inactive'
  return report(r)
end
local share, pairs_ = r.base, {}
for region in string.gmatch(ARGV[6], '[^,]+') do
  local f = redis.call('HMGET', KEYS[1], 'peer:' .. region, 'out:' .. region, 'in:' .. region)
  local pair = words(f[1], 4)
  if pair[4] ~= 1 then
    r.verdict = 'inactive'
    return report(r)
  end
  pair[4] = 0
  pairs_[region] = join(pair)
  share = share + words(f[3], 4)[1] - words(f[2], 3)[1]
end
if share < 0 or share > WHOLE then
  r.verdict = 'absurd'
  return report(r)
end
for region, text in pairs(pairs_) do redis.call('HSET', KEYS[1], 'peer:' .. region, text) end
redis.call('HDEL', KEYS[1], 'phase')
if b.rule.algorithm == 0 then b.share = share else credit(r, share - b.share) end
redis.call('HSET', KEYS[1], 'share', integer(b.share), 'waiting', integer(r.waiting), 'due', integer(r.due))
r.phase, r.verdict, r.answered = 'active', 'applied', 0
fit(b, r.env)
save(b, r.env)
return report(r)
