-- Take: decides many requests, each against one or more limits, all buckets in one slot.
--
-- KEYS     the buckets, request by request, limit by limit; a sliding log is followed by its sorted set, <bucket>:log
-- ARGV[1]  loss, ARGV[2] horizon, ARGV[3] fenced: see new_env
-- ARGV[4…] one per request: its limits (see parse_ask) joined by ';'
--
-- Reply: one line per request (joined by \n, which spares Redis and the client a bulk string each), "outcome limit tokens" and
-- then any of the marked fields:
--   outcome  A allowed (every limit charged), R refused, L larger than a capacity (nothing charged)
--   limit    index of the limit that the rest speaks of: the one that refused for longest, else the one with least left
--   tokens   its level afterwards, decimal
--   s share in force, ppm   e effective capacity, tokens    where they are not simply the base share's of the caller's rule
--   w wait, r reset         µs, for window algorithms; for token buckets they follow from level, slice and rule
--   g tokens taken ahead    v revision and u rule (commas for spaces) that the bucket goes by, where newer than the caller's
--   x something unreadable was thrown away    l the key's rights are lost, the floor counts
--
-- What is owed is taken first, whatever the outcome, down to minus the effective capacity; what comes back is added first, up to
-- it. Tokens ahead are the same number for every limit of a request.
--
-- A refusal writes nothing, except: a debt or a return, time pulled back after a clock step, a strictly newer revision, and
-- the beginning of a bucket that does not start full (it would never fill otherwise).

-- What follows is for the requests that quick.lua has left.

local buckets, dirty = {}, {}

-- bucket gives the state of one key, shared by all requests of the call that name it: hot keys are read and written once.
local function bucket(key, ask)
  local b = buckets[key]
  if not b then
    b = load(key, ask, env, unlike[key])
    buckets[key] = b
  end
  adopt(b, ask, env)
  return b
end

local function touch(b)
  if not b.dirty then
    b.dirty = true
    dirty[#dirty + 1] = b
  end
end

local function note(b)
  if (b.there and (b.stepped or b.newer)) or (b.begun and b.tokens < b.eff) then touch(b) end
end

local function answer(outcome, index, b, granted, wait)
  local s = outcome .. index .. level_of(b)
  if b.moved or b.lost or b.stale or env.fenced or b.slice.share ~= b.rule.base then s = s .. slice_text(b.slice) end
  if b.rule.algorithm ~= 0 then
    if outcome == 'R' then s = s .. ' w' .. string.format('%.0f', math.min(wait, window_reset(b, env))) end
    s = s .. ' r' .. string.format('%.0f', window_reset(b, env))
  end
  if granted > 0 then s = s .. ' g' .. string.format('%.0f', granted) end
  if b.stale then s = s .. ' v' .. b.rev .. ' u' .. string.gsub(b.rule.text, ' ', ',') end
  if b.broken then s = s .. ' x' end
  if b.lost then s = s .. ' l' end
  return s
end

-- settle_owed takes what the caller has admitted without asking, or puts back what it took ahead.
local function settle_owed(b, ask)
  local owed = ask.owed
  if owed == 0 then return end
  local level = b.tokens - owed
  if owed > 0 and level < -b.eff then level = math.min(b.tokens, -b.eff) end
  if owed < 0 and level > b.eff then level = b.eff end
  if level < 0 then b.indebted = true end
  if b.rule.algorithm == 0 then b.tokens = level else consume(b, b.tokens - level) end
  touch(b)
end

-- fits tells how a limit judges: 'A', 'R' or 'L', and for 'R' how long it would refuse (µs).
local function fits(b, ask)
  if ask.cost > b.rule.capacity then return 'L', math.huge end
  if b.tokens >= ask.cost - TOLERANCE then return 'A', 0 end
  if ask.cost > b.eff + TOLERANCE then return 'R', math.huge end
  if b.rule.algorithm ~= 0 then return 'R', window_wait(b, ask.cost, env) end
  return 'R', wait_us(b.tokens, ask.cost, b.slice.num, b.slice.den) or math.huge
end

-- spare is how many tokens ahead a limit can give beyond the cost.
local function spare(b, ask)
  if ask.ahead == 0 or b.rule.algorithm ~= 0 then return 0 end
  return math.max(0, math.min(ask.ahead, floor(b.tokens - ask.cost + TOLERANCE)))
end

local function charge(b, amount)
  if amount == 0 then return note(b) end
  consume(b, amount)
  touch(b)
end

local FIRST = ' 0 '

local function single(key, ask)
  local b = bucket(key, ask)
  settle_owed(b, ask)
  local outcome, wait = fits(b, ask)
  if outcome ~= 'A' then
    note(b)
    return answer(outcome, FIRST, b, 0, wait)
  end
  local granted = spare(b, ask)
  charge(b, ask.cost + granted)
  return answer('A', FIRST, b, granted)
end

local rank = { A = 0, R = 1, L = 2 }

local function several(first, list)
  local found, worst, at, longest = {}, 'A', 0, -1
  for i, ask in ipairs(list) do
    local b = bucket(KEYS[first], ask)
    first = first + ask.width
    found[i] = b
    settle_owed(b, ask)
    local outcome, wait = fits(b, ask)
    if rank[outcome] > rank[worst] or (outcome == worst and outcome ~= 'A' and wait > longest) then
      worst, at, longest = outcome, i, wait
    end
  end
  if worst ~= 'A' then
    for _, b in ipairs(found) do note(b) end
    return answer(worst, ' ' .. at - 1 .. ' ', found[at], 0, longest)
  end
  local granted, least = math.huge, math.huge
  for i, b in ipairs(found) do granted = math.min(granted, spare(b, list[i])) end
  for i, b in ipairs(found) do
    charge(b, list[i].cost + granted)
    if b.tokens < least then least, at = b.tokens, i end
  end
  return answer('A', ' ' .. at - 1 .. ' ', found[at], granted)
end

for _, r in ipairs(left) do
  local asked, place = requests[ARGV[r]], first[r]
  if asked.rule then replies[r - 3] = single(KEYS[place], asked) else replies[r - 3] = several(place, asked) end
end
for i = 1, #dirty do save(dirty[i], env) end
return table.concat(replies, '\n')
