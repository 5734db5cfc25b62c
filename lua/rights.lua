-- What give, lend, apply and acknowledge have in common: the rights of a key that has moved, beside its bucket.
--
-- KEYS[1]  the bucket          KEYS[2]  the region's record, in the same slot
-- ARGV[1]  loss, ARGV[2] horizon, ARGV[3] fenced: see new_env
-- ARGV[4]  the limit: see parse_ask (cost, owed and ahead are not used)
-- ARGV[5]  the peer
-- ARGV[6]  every other region, separated by commas: a key that moves for the first time opens a pair with each
--
-- Fields of a bucket that has moved, besides share, held and floor:
--   base          ppm recorded at the first move, never edited
--   incarnation   the number under which these rights were established
--   phase         "fenced" or "relearning"; missing while active
--   waiting, due  of window algorithms: ppm received and not yet in force, and since when (µs) they will be
--   peer:<r>      "incarnation epoch opened answered" of region r as known here
--   out:<r>       "share ride loan" given to r       in:<r>, ack:<r>   "share ride loan refused" applied of r's, by r
-- Shares are ppm, rides thousandths of a token, loans whole tokens; all cumulative. held is the sum of out − ack of loans.
--
-- Fields of the record: self, the region's incarnation; phase, missing while active; peer:<r>, the lowest incarnation of r
-- that is not void. Without a record the region has lost its data, or never lived: nothing moves until it has a number.
--
-- Reply: verdict, amount, now (µs), tokens, ts (µs), share, base, floor, held, effective capacity, incarnation, peer's
-- incarnation, epoch, opened, out, in, ack, phase, answered, waiting, due. All strings. The Go twin is shared/rights; operations and their order are
-- the same.

local MAX = 9007199254740991
local MILLI = 1000

local function integer(x) return string.format('%.0f', x) end

-- words reads n whole numbers from text, zeros where it is missing, and tells whether that is what it held.
local function words(text, n)
  local list, readable = {}, true
  for w in string.gmatch(text or '', '%S+') do
    local x = finite(w)
    readable = readable and x ~= nil
    list[#list + 1] = x or 0
  end
  readable = readable and (not text or #list == n)
  for i = #list + 1, n do list[i] = 0 end
  return list, readable
end

-- legible tells whether the fields of a key that has moved, as rights reads them, are what scripts write: all or none of a pair's
-- counters, and nothing mistyped.
local function legible(f)
  for i = 1, 2 do
    if not finite(f[i]) then return false end
  end
  for i = 8, 9 do
    if f[i] and not finite(f[i]) then return false end
  end
  for i, n in pairs({ [4] = 4, [5] = 3, [6] = 4, [7] = 4 }) do
    local _, readable = words(f[i], n)
    if not readable then return false end
  end
  if f[3] and f[3] ~= 'fenced' and f[3] ~= 'relearning' then return false end
  local counters = f[5] ~= false and f[5] ~= nil
  if counters ~= (f[6] ~= false and f[6] ~= nil) or counters ~= (f[7] ~= false and f[7] ~= nil) then return false end
  return counters or words(f[4], 4)[3] == 0
end

local function join(list)
  local out = {}
  for i, x in ipairs(list) do out[i] = integer(x) end
  return table.concat(out, ' ')
end

-- fit brings the level under the slice after a change of share or hold. It never raises a bucket; a window has the room it has.
local function fit(b, env)
  reslice(b, env)
  if b.rule.algorithm == 0 then clamp(b) else b.tokens = room(b, env) end
end

-- mature puts share into force that has waited long enough. A token bucket has nothing to wait for.
local function mature(r)
  local b = r.b
  if r.waiting <= 0 or not b.share or r.phase ~= 'active' then return end
  if b.rule.algorithm ~= 0 and r.env.now < r.due then return end
  b.share, r.waiting, r.matured = b.share + r.waiting, 0, true
  fit(b, r.env)
end

-- credit takes in share: of a window algorithm it comes into force one whole window from now, when nothing that was used under
-- the giver's share counts any more.
local function credit(r, share)
  local b = r.b
  if b.rule.algorithm == 0 then
    b.share = b.share + share
  elseif share > 0 then
    r.waiting, r.due = r.waiting + share, r.env.now + b.rule.fill * 1000
  end
end

-- rights loads, settles and adopts the bucket, and reads the pair with the peer. r.verdict says what forbids a step.
local function rights()
  local env = new_env(ARGV[1], ARGV[2], ARGV[3])
  local ask, peer = parse_ask(ARGV[4]), ARGV[5]
  local b = load(KEYS[1], ask, env)
  adopt(b, ask, env)
  local f = b.wrong and {} or
    redis.call('HMGET', KEYS[1], 'base', 'incarnation', 'phase', 'peer:' .. peer, 'out:' .. peer, 'in:' .. peer, 'ack:' .. peer,
      'waiting', 'due')
  local region = redis.call('HMGET', KEYS[2], 'self', 'phase', 'peer:' .. peer)
  local pair = words(f[4], 4)
  local r = {
    env = env, b = b, peer = peer, opened = b.share ~= nil,
    phase = f[3] or region[2] or (region[1] and 'active' or 'relearning'),
    base = finite(f[1]) or b.rule.base, number = finite(f[2]) or finite(region[1]) or 0,
    known = math.max(pair[1], finite(region[3]) or 0), epoch = math.max(pair[2], 1), heard = pair[3], answered = pair[4],
    out = words(f[5], 3), inn = words(f[6], 4), ack = words(f[7], 4),
    waiting = finite(f[8]) or 0, due = finite(f[9]) or 0, amount = 0, verdict = 'applied',
  }
  local own = finite(region[1]) or 0
  if b.lost or (b.moved and not legible(f)) then
    r.verdict, r.phase = 'lost', 'relearning'
  elseif r.phase ~= 'active' or env.fenced then
    r.verdict = 'inactive'
  elseif r.number < own then -- rights of a former life of this Redis
    r.phase, r.verdict = 'relearning', 'inactive'
  end
  mature(r)
  if not r.opened and not b.lost then
    b.share, b.floor = b.rule.base, math.min(b.floor, b.rule.base)
    if b.most < b.rule.base and b.rule.algorithm ~= 0 then -- what the base split has brought of late waits, as if it had been given
      b.share = b.most
      credit(r, b.rule.base - b.most)
    end
    reslice(b, env)
  end
  return r
end

-- meet compares the incarnations in a message with those known here.
local function meet(r, sender, receiver)
  if sender < r.known or receiver < r.number then return 'outdated' end
  if sender > r.known or receiver > r.number then return 'ahead' end
  return 'applied'
end

local function pair_text(r) return join({ r.known, r.epoch, r.heard, r.answered }) end

-- keep writes bucket and rights. At the first move it fixes base and floor and opens a pair with every other region.
local function keep(r)
  local b = r.b
  if not r.opened then
    for region in string.gmatch(ARGV[6], '[^,]+') do
      if region ~= r.peer then
        local known = redis.call('HGET', KEYS[2], 'peer:' .. region) or '0'
        redis.call('HSETNX', KEYS[1], 'peer:' .. region, known .. ' 1 0 0')
      end
    end
    redis.call('HSET', KEYS[1], 'base', integer(r.base), 'floor', integer(b.floor), 'incarnation', integer(r.number))
    redis.call('PERSIST', KEYS[1])
    b.moved = true
  end
  if r.waiting > 0 or r.matured then
    redis.call('HSET', KEYS[1], 'waiting', integer(r.waiting), 'due', integer(r.due))
  end
  redis.call('HSET', KEYS[1], 'share', integer(b.share), 'held', integer(b.held), 'peer:' .. r.peer, pair_text(r),
    'out:' .. r.peer, join(r.out), 'in:' .. r.peer, join(r.inn), 'ack:' .. r.peer, join(r.ack))
  save(b, r.env)
end

local function report(r)
  local b = r.b
  return {
    r.verdict, integer(r.amount), integer(r.env.now), level_text(b.tokens), integer(b.ts), integer(b.share or 0),
    integer(r.base), integer(b.floor), integer(b.held), level_text(b.eff), integer(r.number), integer(r.known),
    integer(r.epoch), integer(r.heard), join(r.out), join(r.inn), join(r.ack), r.phase,
    integer(r.answered), integer(r.waiting), integer(r.due),
  }
end
