-- The state of one bucket, on top of prelude.lua and windows.lua: load, adopt, consume, save.

-- settle brings b to env.now under its present slice.
local function settle(b, env)
  if b.rule.algorithm == 0 then
    b.tokens, b.ts = refill(b.tokens, b.ts, env.now, b.eff, b.num, b.den)
  else
    roll(b, env)
  end
  b.settled = true
end

-- clamp takes away what no longer fits under the slice. It never raises.
local function clamp(b)
  if b.tokens > b.eff then b.tokens = b.eff end
end

-- consume takes amount, which may be negative, from the level. Windows count it.
local function consume(b, amount)
  b.tokens = b.tokens - amount
  if b.rule.algorithm ~= 0 then count(b, amount) end
end

-- fresh is the level of a bucket that is not there: full, unless this Redis lost its data less than a time to fill ago. Shards
-- begin at nothing, so that changing their number refills nobody; so does a key that has moved, which was there before.
local function fresh(b, env)
  if b.rule.shards > 1 or (b.moved and not b.lost) then return 0 end
  if env.loss > 0 and (b.lost or b.rule.fill <= env.horizon) then
    local since = env.now - env.loss
    if since < 0 then since = 0 end
    if b.rule.algorithm == 0 then return math.min(b.eff, since * b.num / b.den) end
    return since < b.rule.fill * 1000 and 0 or b.eff
  end
  if b.lost then return 0 end
  return b.eff
end

-- load reads and settles one bucket. Every field a decision needs comes with one HMGET. A result without b.rule has
-- neither state nor rule yet: adopt completes it. b.there: tokens and ts were readable. b.moved: the key has rights.
-- b.lost: it has moved, and its rights are missing or unreadable. b.broken: something was there that had to be thrown away.
local function load(key, ask, env)
  local f = redis.pcall('HMGET', key, 'tokens', 'ts', 'rev', 'rule', 'share', 'held', 'floor')
  local b = { key = key, held = 0, floor = ask.floor, tokens = 0, ts = env.now }
  if f.err then
    if not string.find(f.err, 'WRONGTYPE', 1, true) then error(f.err, 0) end
    b.wrong, b.broken, f = true, true, {}
  end
  if f[5] or f[6] or f[7] then
    b.moved = true
    local share, held, floor = finite(f[5]), finite(f[6] or 0), finite(f[7] or 0)
    if share and held and floor and share >= 0 and share <= WHOLE and held >= 0 and floor >= 0 then
      b.share, b.held, b.floor = share, held, floor
    else
      b.lost, b.broken = true, true
    end
  elseif ask.moved then
    b.lost = true
  end
  local tokens, ts = finite(f[1]), finite(f[2])
  if tokens and ts then
    b.there, b.tokens, b.ts = true, tokens, math.floor(ts * 1000 + 0.5)
    b.was, b.stepped = b.ts, b.ts > env.now
  elseif f[1] or f[2] then
    b.broken = true
  end
  b.rule, b.rev = parse_rule(f[4]), f[3]
  if b.rule and not string.find(b.rev or '', '^%d+%.%d+$') then b.rule = nil end
  if b.rule and b.there then
    reslice(b, env)
    if b.rule.algorithm ~= 0 then read_window(b) end
    settle(b, env)
  end
  return b
end

-- adopt lets b go by the caller's rule unless b has seen a newer revision; b.stale tells the caller so. Afterwards the slice
-- is up to date and the level within it. b.adopted: rev or rule must be written. b.newer: it was strictly newer.
local function adopt(b, ask, env)
  local known = b.rule
  local order = 1
  if known then order = b.rev == ask.rev and 0 or compare_rev(ask.rev, b.rev) end
  b.stale = order < 0
  if order > 0 then b.newer = true end
  if order > 0 or (order == 0 and known ~= ask.rule) then
    b.adopted, b.rule, b.rev = true, ask.rule, ask.rev
    reslice(b, env)
  end
  if not b.there and not b.begun then
    b.begun, b.tokens, b.ts = true, fresh(b, env), env.now
    if b.rule.algorithm ~= 0 then begin_window(b, env) end
  elseif b.there and not known then
    b.ts = env.now
    if b.rule.algorithm ~= 0 then begin_window(b, env) end
  elseif b.rule ~= known and (b.rule.algorithm ~= known.algorithm or b.rule.window ~= known.window) then
    clamp(b)
    if b.rule.algorithm ~= 0 then begin_window(b, env) end
  end
  if b.rule.algorithm ~= 0 then b.tokens = room(b, env) else clamp(b) end
end

local function level_text(tokens) return string.format('%.17g', tokens) end

-- expire keeps the TTL at least one time to fill away, and sets it only when a fill period begins, the rule changes or debt was
-- booked (which takes up to two times to fill): set to two periods by the first write of a period, it is still more than one
-- away at the last. Shards, which would begin at nothing again, stay for an hour. Keys with rights have no TTL.
local function expire(b, env)
  if b.moved then return end
  local period = b.rule.fill
  if period < 500 then period = 500 end
  if b.rule.shards > 1 and period < 1800000 then period = 1800000 end
  local unit = period * 1000
  if b.there and not b.adopted and not b.stepped and not b.indebted and
    math.floor(b.was / unit) == math.floor(env.now / unit) then return end
  if period > FOREVER then
    redis.call('PERSIST', b.key)
  else
    redis.call('PEXPIRE', b.key, string.format('%.0f', math.ceil(2 * period)))
  end
end

-- save writes level, time and, where they changed, revision and rule, and keeps the TTL.
local function save(b, env)
  if b.wrong then redis.call('DEL', b.key) end
  local ts = b.ts == env.now and env.text or string.format('%.3f', b.ts / 1000)
  if b.adopted then
    redis.call('HSET', b.key, 'tokens', level_text(b.tokens), 'ts', ts, 'rev', b.rev, 'rule', b.rule.text)
  else
    redis.call('HSET', b.key, 'tokens', level_text(b.tokens), 'ts', ts)
  end
  if b.rule.algorithm ~= 0 then save_window(b, env) end
  expire(b, env)
end
