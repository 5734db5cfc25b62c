-- Window algorithms: what was used in a window, instead of a level that refills.
--
-- Further fields of the hash:
--   used  tokens counted in the present window (fixed, counter); the window is the one that holds ts
--   prev  tokens counted in the window before it (counter)
--   seq   makes members of the log unique
-- The log is a sorted set beside the hash, <bucket>:log, one member per token, its score the time in µs.
--
-- Windows of so many seconds are counted from 1970; h, d and m are UTC hours, days and months. used ≤ effective capacity is
-- the limit in each: a change of rule or share keeps what was used, so a smaller slice refuses at once and a larger one has
-- more room at once. Credits of share therefore come into force a window late, those of a changed base split by what the caller
-- says is late. When the algorithm or the window changes, the new window begins with as much used as leaves the old level.

local FIXED, LOG, COUNTER = 1, 2, 3
local LETTERS = { h = 3600, d = 86400 }

-- month_start is the first day (since 1970) of the month that holds day, and month_days its length. Civil calendar after
-- Howard Hinnant's days-to-date algorithm (https://howardhinnant.github.io/date_algorithms.html).
local function month_of(day)
  local z = day + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local first = day - (doy - floor((153 * mp + 2) / 5))
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  local days = 31
  if month == 4 or month == 6 or month == 9 or month == 11 then days = 30 end
  if month == 2 then
    days = (year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)) and 29 or 28
  end
  return first, days
end

-- window_of is start and length of the window that holds t, in µs.
local function window_of(rule, t)
  if rule.window == 'm' then
    local first, days = month_of(floor(t / 86400e6))
    return first * 86400e6, days * 86400e6
  end
  local length = (LETTERS[rule.window] or rule.window) * 1e6
  return floor(t / length) * length, length
end

local function read_window(b)
  local f = redis.call('HMGET', b.key, 'used', 'prev', 'seq')
  b.used, b.prev, b.seq = finite(f[1]), finite(f[2]) or 0, finite(f[3]) or 0
  if not b.used or b.used < 0 then b.used = math.max(0, b.eff - b.tokens) end
  b.added = 0
end

local function log_key(b) return b.key .. ':log' end

-- live is how many tokens of the log count at env.now.
local function live(b, env)
  local n = redis.pcall('ZCOUNT', log_key(b), format('(%.0f', env.now - b.rule.window * 1e6), '+inf')
  if type(n) == 'number' then return n end
  if not string.find(n.err, 'WRONGTYPE', 1, true) then error(n.err, 0) end
  b.clear, b.broken = true, true
  return 0
end

-- room is the level of a window: what may still be used.
local function room(b, env)
  if b.rule.algorithm ~= COUNTER then return b.eff - b.used end
  local start, length = window_of(b.rule, env.now)
  return b.eff - (b.prev * (start + length - env.now) / length + b.used)
end

-- roll brings the counts to env.now. A clock stepped back keeps them, in the window it finds itself in.
local function roll(b, env)
  if b.rule.algorithm == LOG then
    b.used = live(b, env)
  else
    local start, length = window_of(b.rule, env.now)
    if b.ts < start then
      b.prev = b.ts >= start - length and b.used or 0
      b.used = 0
    end
  end
  b.last, b.ts = math.min(b.ts, env.now), env.now
  b.tokens = room(b, env)
end

-- begin_window starts a window at b.tokens.
local function begin_window(b, env)
  b.used, b.prev, b.seq, b.added = math.max(0, b.eff - b.tokens), 0, b.seq or 0, 0
  b.last, b.ts = env.now, env.now
  if b.rule.algorithm == LOG then
    b.used = ceil(b.used - TOLERANCE)
    b.added, b.clear = b.used, true
  end
end

-- count notes what was used, or given back: a log gives back its newest entries.
local function count(b, amount)
  if b.rule.algorithm == LOG then
    amount = amount < 0 and -floor(TOLERANCE - amount) or ceil(amount - TOLERANCE)
    b.added = b.added + amount
  end
  b.used = math.max(0, b.used + amount)
end

-- window_wait is the time in µs until cost fits, if nobody uses anything; cost is at most the effective capacity.
local function window_wait(b, cost, env)
  local start, length = window_of(b.rule, env.now)
  local left = start + length - env.now
  if b.rule.algorithm == FIXED then return left end
  local budget = b.eff - cost
  if b.rule.algorithm == COUNTER then
    if b.used <= budget + TOLERANCE and b.prev > 0 then
      return math.max(1, ceil(left - math.max(0, budget - b.used) * length / b.prev))
    end
    return left + math.max(0, ceil(length - math.max(0, budget) * length / b.used))
  end
  if b.clear then return length end
  local surplus = ceil(b.used - budget - TOLERANCE)
  local found = redis.call('ZRANGEBYSCORE', log_key(b), format('(%.0f', env.now - length), '+inf', 'WITHSCORES',
    'LIMIT', surplus - 1, 1)
  if not found[2] then return length end
  return math.min(length, tonumber(found[2]) + length - env.now)
end

-- window_reset is the time in µs until nothing counts any more, at most: the log goes by the last write.
local function window_reset(b, env)
  if b.used <= 0 and b.prev <= 0 then return 0 end
  local start, length = window_of(b.rule, env.now)
  if b.rule.algorithm == LOG then
    if b.used <= 0 then return 0 end
    return math.max(0, (b.added > 0 and env.now or b.last) + length - env.now)
  end
  local left = start + length - env.now
  if b.rule.algorithm == COUNTER and b.used > 0 then left = left + length end
  return left
end

-- write_log forgets what no longer counts, pulls entries of a clock that was ahead to the present, and adds the new ones or
-- takes back the newest.
local function write_log(b, env)
  local key, now = log_key(b), format('%.0f', env.now)
  if b.clear then
    redis.call('DEL', key)
  else
    redis.call('ZREMRANGEBYSCORE', key, '-inf', format('%.0f', env.now - b.rule.window * 1e6))
    if b.stepped then
      for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do redis.call('ZADD', key, now, member) end
    end
  end
  if b.added < 0 then
    redis.call('ZPOPMAX', key, format('%.0f', -b.added))
    b.added = 0
  end
  local args = {}
  for i = 1, b.added do
    args[#args + 1] = now
    args[#args + 1] = now .. '-' .. format('%.0f', b.seq + i)
    if #args >= 1000 or i == b.added then
      redis.call('ZADD', key, unpack(args))
      args = {}
    end
  end
  b.seq, b.added, b.clear = b.seq + b.added, 0, false
  redis.call('PEXPIRE', key, format('%.0f', b.rule.window * 1000 + 1000))
end

local function save_window(b, env)
  if b.rule.algorithm == LOG then write_log(b, env) end
  redis.call('HSET', b.key, 'used', format('%.17g', b.used), 'prev', format('%.17g', b.prev),
    'seq', format('%.0f', b.seq))
end
