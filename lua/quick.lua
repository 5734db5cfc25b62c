-- The quick way through take.lua: token buckets that are there, asked for one cost each under the very rule they go by. That is
-- nearly every request, and it needs neither the table that load makes of a bucket nor the functions of the files that
-- follow, which Redis makes anew at every call. Whatever else a request turns out to need is left, with nothing touched, to
-- take.lua, which comes after what is written here. KEYS, ARGV and the reply are described there; the arithmetic is the prelude's.

local env = new_env(ARGV[1], ARGV[2], ARGV[3])
local replies = {} -- by request
local left, first = {}, {} -- the requests that are left, and by them the place of their first key in KEYS
local states, unlike = {}, {} -- by key: its state, or false; what fetch found of a key that is none for here

local requests = {}
-- request gives the limits of one ARGV: an ask, or a list of them. Both know how many KEYS they have: width.
local function request(text)
  local asked
  if string.find(text, ';', 1, true) then
    asked = { width = 0 }
    for one in string.gmatch(text, '[^;]+') do
      local ask = parse_ask(one)
      asked[#asked + 1], asked.width = ask, asked.width + ask.width
    end
  else
    asked = parse_ask(text)
  end
  requests[text] = asked
  return asked
end

-- shown is the slice of a key under ask, and what a reply says of it, from the rights that fetch found; nil where they are lost.
local function shown(ask, f)
  local rule = ask.rule
  if f[5] or f[6] or f[7] then
    local b = { rule = rule, held = 0, floor = ask.floor, most = ask.most }
    read_rights(b, f[5], f[6], f[7])
    if b.lost then return nil end
    measure(b, env)
    return b.slice, slice_text(b.slice)
  end
  if ask.moved then return nil end
  local s = rule.slice
  if not s or s.share ~= rule.base then s = slice_of(rule, rule.base) end
  return s, ''
end

-- state_of reads and settles a key, false where the quick way is none for it.
local function state_of(key, ask)
  local f = fetch(key)
  local tokens, at = finite(f[1]), finite(f[2])
  if tokens and at and f[3] == ask.rev and f[4] == ask.rule.text then
    local s, says = shown(ask, f)
    at = floor(at * 1000 + 0.5)
    if s and at <= env.now then
      local b = { key = key, ask = ask, tokens = 0, ts = 0, text = false, was = at, says = says }
      b.tokens, b.ts = refill(tokens, at, env.now, s.eff, s.num, s.den)
      return b
    end
  end
  unlike[key] = f
  return false
end

do
  local place, dirty = 1, {}
  for r = 4, #ARGV do
    local ask = requests[ARGV[r]] or request(ARGV[r])
    local b = false
    if ask.plain and not env.fenced then
      local key = KEYS[place]
      b = states[key]
      if b == nil then
        b = state_of(key, ask)
        states[key] = b
      end
    end
    if b and b.ask == ask and b.tokens >= ask.cost - TOLERANCE then
      if not b.text then dirty[#dirty + 1] = b end
      b.tokens = tidy(b.tokens - ask.cost)
      b.text = level_text(b.tokens)
      replies[r - 3] = 'A 0 ' .. b.text .. b.says
    elseif b and b.ask == ask and ask.cost <= ask.rule.capacity then
      replies[r - 3] = 'R 0 ' .. level_text(b.tokens) .. b.says
    else
      left[#left + 1], first[r] = r, place
    end
    place = place + ask.width
  end
  for i = 1, #dirty do
    local b = dirty[i]
    redis.call('HSET', b.key, 'tokens', b.text, 'ts', time_text(b.ts, env))
    if b.says == '' then
      local ttl, began = ttl_of(b.ask.rule, env)
      if b.was < began then outlive(b.key, ttl) end
    end
  end
end
if #left == 0 then return table.concat(replies, '\n') end
