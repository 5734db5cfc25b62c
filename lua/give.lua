-- Give: debits share for a peer. KEYS, ARGV[1…6] and the reply: see rights.lua.
--
-- ARGV[7]  at most so much, ppm      ARGV[8]  never leave less than this, ppm
--
-- What is given leaves the floor, and the loans still out leave the floor's capacity. Tokens above the smaller capacity are
-- clipped and ride along; windows have no tokens that could. amount is what was debited, possibly 0; then nothing is written.

local r = rights()
if r.verdict ~= 'applied' then return report(r) end
local b = r.b
local held = math.ceil(b.held * WHOLE / b.rule.capacity)
local amount = math.min(tonumber(ARGV[7]), b.share - math.max(tonumber(ARGV[8]), b.floor + held), MAX - r.out[1])
if amount <= 0 then return report(r) end
b.share = b.share - amount
r.out[1] = r.out[1] + amount
reslice(b, r.env)
local clipped = b.tokens - b.eff
if clipped > 0 and b.rule.algorithm == 0 then
  r.out[2] = r.out[2] + math.min(math.floor(clipped * MILLI), MAX - r.out[2])
end
fit(b, r.env)
r.amount = amount
keep(r)
return report(r)
