-- The state of one bucket, on top of prelude.lua and windows.lua: load, adopt, consume, save.

-- clamp takes away what no longer fits under the slice. It never raises.
local function clamp(b)
  if b.tokens > b.eff then b.tokens = b.eff end
end

-- consume takes amount, which may be negative, from the level. Windows count it.
local function consume(b, amount)
  b.tokens = tidy(b.tokens - amount)
  if b.rule.algorithm ~= 0 then count(b, amount) end
end

-- fresh is the level of a bucket that is not there: full, unless this Redis lost its data less than a time to fill ago. Shards
-- begin at nothing, so that changing their number refills nobody; so does a key that has moved, which was there before. What the
-- base split has brought of late may be used up elsewhere: it has to come in.
local function fresh(b, env)
  if b.rule.shards > 1 or (b.moved and not b.lost) then return 0 end
  local full = b.eff
  if b.most < b.rule.base and not b.lost then full = math.min(full, part(b.rule, b.most)) end
  if env.loss > 0 and (b.lost or b.rule.fill <= env.horizon) then
    local since = env.now - env.loss
    if since < 0 then since = 0 end
    if b.rule.algorithm == 0 then return math.min(full, since * b.slice.num / b.slice.den) end
    return since < b.rule.fill * 1000 and 0 or full
  end
  if b.lost then return 0 end
  return full
end

-- load reads and settles one bucket; f is what fetch has found, where that is known. Every field a decision needs comes with one HMGET. A result without b.rule has
-- neither state nor rule yet: adopt completes it. b.there: tokens and ts were readable. b.moved: the key has rights.
-- b.lost: it has moved, and its rights are missing or unreadable. b.broken: something was there that had to be thrown away.
local function load(key, ask, env, f)
  f = f or fetch(key)
  local tokens, ts, rev, rule = finite(f[1]), finite(f[2]), f[3], rules[f[4]] or parse_rule(f[4]) or false
  local at = env.now
  if ts then at = floor(ts * 1000 + 0.5) end
  if rule and rev ~= ask.rev and not string.find(rev or '', '^%d+%.%d+$') then rule = false end
  -- What every decision sets is named here, so that the table is made once and does not grow.
  local b = {
    key = key, rule = rule, rev = rev, tokens = tokens or 0, ts = at, was = at, held = 0, floor = ask.floor, most = ask.most,
    there = tokens and ts, slice = false, eff = 0, dirty = false, text = false, text_of = false, begun = false,
  }
  if f.err then
    b.wrong, b.broken = true, true
  elseif (f[1] or f[2]) and not b.there then
    b.broken = true
  end
  if f[5] or f[6] or f[7] then
    read_rights(b, f[5], f[6], f[7])
  elseif ask.moved then
    b.lost = true
  end
  if rule and b.there then
    if at > env.now then b.stepped = true end
    measure(b, env)
    if rule.algorithm == 0 then
      local s = b.slice
      b.tokens, b.ts = refill(tokens, at, env.now, s.eff, s.num, s.den)
    else
      read_window(b)
      roll(b, env)
    end
  end
  return b
end

-- begin makes a bucket that was not there.
local function begin(b, env)
  b.begun, b.tokens, b.ts = true, fresh(b, env), env.now
  if b.rule.algorithm ~= 0 then begin_window(b, env) end
end

-- take_rule lets b go by another rule. known is the one before, if there was any.
local function take_rule(b, ask, known, env)
  b.adopted, b.rule, b.rev = true, ask.rule, ask.rev
  reslice(b, env)
  if not b.there and not b.begun then return begin(b, env) end
  if not known or known.algorithm ~= ask.rule.algorithm or known.window ~= ask.rule.window then
    clamp(b)
    if ask.rule.algorithm ~= 0 then begin_window(b, env) end
  end
end

-- adopt lets b go by the caller's rule unless b has seen a newer revision; b.stale tells the caller so. Afterwards the slice
-- is up to date and the level within it. b.adopted: rev or rule must be written. b.newer: it was strictly newer.
local function adopt(b, ask, env)
  local known = b.rule
  if b.most ~= ask.most then
    b.most = ask.most
    if known and known.algorithm ~= 0 then measure(b, env) end
  end
  if not known then
    b.newer = true
    take_rule(b, ask, known, env)
  elseif b.rev ~= ask.rev or known ~= ask.rule then
    local order = compare_rev(ask.rev, b.rev)
    b.stale = order < 0
    if order > 0 then b.newer = true end
    if order >= 0 then take_rule(b, ask, known, env) end
  elseif b.stale then
    b.stale = false
  end
  if not b.there and not b.begun then
    measure(b, env)
    begin(b, env)
  end
  if b.rule.algorithm ~= 0 then b.tokens = room(b, env) elseif b.tokens > b.eff then b.tokens = b.eff end
end

-- level_of is b's level as text, made once where it is both stored and answered.
local function level_of(b)
  if b.text_of ~= b.tokens then b.text, b.text_of = level_text(b.tokens), b.tokens end
  return b.text
end

-- expire keeps the TTL at least one time to fill away, and sets it only when a fill period begins, the rule changes or debt was
-- booked (which takes up to two times to fill): set to two periods by the first write of a period, it is still more than one
-- away at the last. Shards, which would begin at nothing again, stay for an hour. Keys with rights have no TTL.
local function expire(b, env)
  if b.moved then return end
  local ttl, began = ttl_of(b.rule, env)
  if b.there and b.was >= began and not b.adopted and not b.stepped and not b.indebted then return end
  outlive(b.key, ttl)
end

-- save writes level, time and, where they changed, revision and rule, and keeps the TTL.
local function save(b, env)
  if b.wrong then redis.call('DEL', b.key) end
  local ts = time_text(b.ts, env)
  if b.adopted then
    redis.call('HSET', b.key, 'tokens', level_of(b), 'ts', ts, 'rev', b.rev, 'rule', b.rule.text)
  else
    redis.call('HSET', b.key, 'tokens', level_of(b), 'ts', ts)
  end
  if b.rule.algorithm ~= 0 then save_window(b, env) end
  expire(b, env)
end
