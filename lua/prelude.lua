-- Shared arithmetic of every script. lua.go puts clock.lua, this file, windows.lua and bucket.lua in front of each script.
--
-- A bucket is the hash rl:{tenant}:route. Its fields:
--   tokens  level at ts, in tokens, decimal. Below zero is debt (tolerance, or what was admitted while Redis was away).
--   ts      time of that level by Redis's clock, in milliseconds with three decimals. It may lie a little before the
--           last write: refill that `tokens` could not hold stays in ts, as far as whole microseconds can say it.
--   rev     revision of `rule`, epoch.number.
--   rule    what that revision says: "capacity refill period base" (tokens, tokens, seconds, ppm); for window algorithms
--           also algorithm (1 fixed, 2 log, 3 counter) and window (seconds, or h, d, m); for one of n shards "s" and n.
--   share   ppm in force. Present from the first move on; without it the rule's base counts.
--   held    whole tokens lent and not yet acknowledged; they lower the effective capacity.
--   floor   ppm that never leaves the region.
-- Window algorithms count what was used instead; there `tokens` only says how much that leaves: see windows.lua.
-- Scripts may keep further fields; nothing here touches them.
--
-- Times inside a script are microseconds, rates are num/den tokens per microsecond. Order in every script: load (settles
-- the refill under the OLD rule, share and hold), adopt (takes a rule that is not older, clamps, never raises), work,
-- save. The Go twin is shared/bucket; the operations and their order are the same, so both round alike.

local floor, ceil, match, format, tonumber = math.floor, math.ceil, string.match, string.format, tonumber
local WHOLE = 1000000
-- A token counts as present from this much below 1: sums of refills like 0.1 + 0.1 + … may fall short of it by rounding.
-- What is taken that way stays in `tokens` as debt, so it is never minted.
local TOLERANCE = 1e-9
local EPSILON = 2 ^ -52
-- Levels below SHORT are kept in steps of 1/STEPS token: shares in whole percents of a rate per second are exact in them, and
-- a number of at most 15 digits is half as long and as costly as one of 17. A write loses less than one step (at rates where
-- a microsecond is worth more) and mints at most 1e-12 token, the noise of the multiplication.
local SHORT, STEPS = 1e7, 1e8
-- Beyond this a TTL (ms) is not worth setting; the key stays until it is deleted.
local FOREVER = 9e14

-- finite gives s as a number, or nil where it is missing, mistyped, NaN or infinite.
local function finite(s)
  local x = tonumber(s)
  if x and x - x == 0 then return x end
end

local rules = {}
-- parse_rule gives the numbers of a `rule` text, or nil where it is unreadable. `fill` is the time from empty to full in
-- milliseconds (for windows: the window), whatever the share.
local function parse_rule(text)
  if not text then return nil end
  local r = rules[text]
  if r then return r end
  local c, n, p, base, kind, window = match(text, '^(%d+) (%d+) (%d+) (%d+) ?([123s]?) ?(%w*)$')
  if not c then return nil end
  r = {
    text = text, capacity = tonumber(c), refill = tonumber(n), period = tonumber(p), base = tonumber(base),
    algorithm = tonumber(kind) or 0, window = tonumber(window) or window, shards = 1,
    fill = 0, slice = false, ttl = false, began = false, -- named here so that the table is made once and does not grow
  }
  if kind == 's' then
    r.shards = tonumber(window)
    if not r.shards or r.shards < 1 then return nil end
  end
  if r.capacity <= 0 or r.period <= 0 or r.base > WHOLE then return nil end
  if r.algorithm == 0 then
    if r.refill <= 0 then return nil end
    r.fill = r.capacity * r.period / r.refill * 1000
  else
    local months = { h = 3600, d = 86400, m = 31 * 86400 }
    local seconds = months[window] or tonumber(window)
    if not seconds or seconds <= 0 then return nil end
    r.fill = seconds * 1000
  end
  rules[text] = r
  return r
end

-- compare_rev orders two revisions: negative where a is older than b. An unreadable one is older than any.
local function compare_rev(a, b)
  if a == b then return 0 end
  local ae, an = match(a or '', '^(%d+)%.(%d+)$')
  local be, bn = match(b or '', '^(%d+)%.(%d+)$')
  if not be then return ae and 1 or 0 end
  if not ae then return -1 end
  if ae ~= be then return tonumber(ae) - tonumber(be) end
  return tonumber(an) - tonumber(bn)
end

local asks = {}
-- parse_ask reads how a caller describes one limit: "rev|rule|floor moved cost owed ahead", and perhaps " late".
--   floor  ppm of this region, used where the key's own is not at hand
--   moved  1: the key is known to have moved, so missing rights are lost ones
--   cost   whole tokens to take
--   owed   whole tokens to take first whatever the verdict, down to −capacity; negative: to give back first
--   ahead  up to so many whole tokens more, if they are there after an admitted cost
--   late   ppm of the base that another region may have used just now; without it none. `most` is the rest: what a window may
--          count of the base, and what a bucket that is not there begins with, while the key has never moved
local function parse_ask(text)
  local a = asks[text]
  if a then return a end
  local rev, rule, low, moved, cost, owed, ahead, late =
    match(text, '^(%d+%.%d+)|([^|]+)|(%d+) ([01]) (%d+) (%-?%d+) (%d+) ?(%d*)$')
  local numbers = parse_rule(rule)
  if not numbers then error('ERR partidor: unreadable limit ' .. text, 0) end
  a = {
    rev = rev, rule = numbers, floor = tonumber(low), moved = moved == '1',
    cost = tonumber(cost), owed = tonumber(owed), ahead = tonumber(ahead), plain = false, width = 1,
    most = numbers.base - (tonumber(late) or 0),
  }
  -- plain: a token bucket, something to take and nothing else. width: how many KEYS it has.
  a.plain = numbers.algorithm == 0 and a.cost > 0 and a.owed == 0 and a.ahead == 0
  if numbers.algorithm == 2 then a.width = 2 end
  asks[text] = a
  return a
end

-- new_env is what holds for a whole call: the time, and what the caller knows of this Redis.
--   loss     when this Redis last lost its data (ms of its clock), 0 for never
--   horizon  ms; buckets that take longer to fill start full even after a loss
--   fenced   '1' while the region may use no more than its floor
local function new_env(loss, horizon, fenced)
  local now = now_us()
  return {
    now = now, text = format('%.3f', now / 1000),
    loss = tonumber(loss) * 1000, horizon = tonumber(horizon), fenced = fenced == '1',
  }
end

local function part(rule, share)
  local c = rule.capacity
  if share ~= WHOLE then c = c * share / WHOLE end
  if rule.shards ~= 1 then c = c / rule.shards end
  return c
end

-- slice_of is what a share of a rule amounts to while nothing is held: capacity in tokens, rate in num/den tokens per µs. Most
-- buckets of a call share the one that the rule remembers.
local function slice_of(rule, share)
  local s = {
    share = share, eff = part(rule, share), num = rule.refill * share, den = rule.period * 1e12 * rule.shards, text = false,
  }
  rule.slice = s
  return s
end

-- slice_text is the words of a reply that say a slice.
local function slice_text(s)
  if not s.text then s.text = format(' s%d e%.17g', s.share, s.eff) end
  return s.text
end

-- measure sets b.slice and b.eff, the effective capacity in tokens, from b's rule and rights.
local function measure(b, env)
  local rule, held = b.rule, b.held
  local share = b.share
  if not share then
    share = rule.base
    if rule.algorithm ~= 0 and b.most < share then share = b.most end
  end
  if b.lost or env.fenced then
    held = 0
    if b.lost or share > b.floor then share = b.floor end
  end
  local s = rule.slice
  if not s or s.share ~= share then s = slice_of(rule, share) end
  if held > 0 then
    local low = part(rule, b.floor < share and b.floor or share)
    local eff = s.eff - held
    if eff < low then eff = low end
    s = { share = share, eff = eff, num = s.num, den = s.den, text = false }
  end
  b.slice, b.eff = s, s.eff
end

-- reslice is measure for a bucket that has been settled: call it after every change of b.rule, b.share, b.held or b.floor.
-- Time that rounding left unspent was earned at the old rate and could be worth more at the new one, so it is dropped.
local function reslice(b, env)
  b.ts = env.now
  measure(b, env)
end

-- refill gives level and time after the refill from ts to now, at most eff. What rounding would drop from the sum stays in
-- the returned time, rounded so that nothing is minted. A clock stepped back refills nothing and pulls the time back.
local function refill(tokens, ts, now, eff, num, den)
  if tokens >= eff then return eff, now end
  if now <= ts then return tokens, now end
  local gain = (now - ts) * num / den
  local sum = tokens + gain
  if sum >= eff then return eff, now end
  local added = sum - tokens
  local rest = (tokens - (sum - added)) + (gain - added)
  if sum < SHORT and sum > -SHORT then
    local steps = floor(sum * STEPS + 1e-4) / STEPS
    rest = rest + (sum - steps)
    sum = steps
  elseif rest < 0 then
    local below = sum - math.abs(sum) * (EPSILON / 2) -- the next double below, never below tokens
    rest = rest + (sum - below)
    sum = below
  end
  local back = 0
  if rest > 0 then
    back = floor(rest * den / num)
    if back > now - ts then back = now - ts end
  end
  return sum, now - back
end

-- tidy gives the step that x is at, where a subtraction has left it a hair away.
local function tidy(x)
  if x >= SHORT or x <= -SHORT then return x end
  local steps = floor(x * STEPS + 0.5) / STEPS
  local off = steps - x
  if off < 1e-10 and off > -1e-10 then return steps end
  return x
end

-- wait_us is the time until `cost` tokens are there if nobody takes any, in whole µs rounded up; nil where that never comes.
local function wait_us(tokens, cost, num, den)
  local missing = cost - tokens
  if missing <= TOLERANCE then return 0 end
  if num <= 0 then return nil end
  local slack = cost * 4 * EPSILON - TOLERANCE / 2
  if slack > 0 then missing = missing + slack end
  return ceil(missing * den / num)
end

-- fetch reads every field that a decision needs: tokens, ts, rev, rule, share, held, floor. Of a key of another type it returns
-- the error; any other error ends the call.
local function fetch(key)
  local f = redis.pcall('HMGET', key, 'tokens', 'ts', 'rev', 'rule', 'share', 'held', 'floor')
  if f.err and not string.find(f.err, 'WRONGTYPE', 1, true) then error(f.err, 0) end
  return f
end

-- read_rights takes the rights of a key that has moved, or finds that they are lost.
local function read_rights(b, share, held, low)
  b.moved = true
  share, held, low = finite(share), finite(held or 0), finite(low or 0)
  if share and held and low and share >= 0 and share <= WHOLE and held >= 0 and low >= 0 then
    b.share, b.held, b.floor = share, held, low
  else
    b.lost, b.broken = true, true
  end
end

-- level_text gives a form that reads back as the same number: 15 digits are enough for a whole number of steps.
local function level_text(tokens)
  if tokens < SHORT and tokens > -SHORT and floor(tokens * STEPS + 0.5) / STEPS == tokens then
    return format('%.15g', tokens)
  end
  return format('%.17g', tokens)
end

-- time_text is a bucket's ts as it is stored.
local function time_text(ts, env)
  if ts == env.now then return env.text end
  return format('%.3f', ts / 1000)
end

-- ttl_of gives the time to live that a bucket of a rule is set to (ms), and when the present period of that began (µs).
local function ttl_of(rule, env)
  if rule.began then return rule.ttl, rule.began end
  local period = rule.fill
  if period < 500 then period = 500 end
  if rule.shards > 1 and period < 1800000 then period = 1800000 end
  rule.ttl, rule.began = ceil(2 * period), floor(env.now / (period * 1000)) * period * 1000
  return rule.ttl, rule.began
end

-- outlive gives a key its time to live.
local function outlive(key, ttl)
  if ttl > FOREVER then
    redis.call('PERSIST', key)
  else
    redis.call('PEXPIRE', key, format('%.0f', ttl))
  end
end
