-- Lend: debits whole tokens for a peer. KEYS, ARGV[1…6] and the reply: see rights.lua.
--
-- ARGV[7]  at most so many tokens      ARGV[8]  never leave less than this in the bucket, tokens
--
-- The amount is held, that is, taken off the effective capacity, until the peer acknowledges it; the floor's capacity stays
-- free of holds. amount is what was lent, possibly 0; then nothing is written.

local r = rights()
if r.verdict ~= 'applied' or r.b.rule.algorithm ~= 0 then return report(r) end -- windows do not lend
local b = r.b
local function whole(x)
  if x <= 0 then return 0 end
  return math.floor(math.min(x, MAX))
end
local spare = part(b.rule, b.share) - b.held - part(b.rule, b.floor)
local amount = math.min(tonumber(ARGV[7]), whole(b.tokens - math.max(tonumber(ARGV[8]), 0)), whole(spare), MAX - r.out[3])
if amount <= 0 then return report(r) end
b.tokens = b.tokens - amount
b.held = b.held + amount
r.out[3] = r.out[3] + amount
reslice(b, r.env)
r.amount = amount
keep(r)
return report(r)
