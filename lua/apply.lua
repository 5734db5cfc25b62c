-- Apply: credits what a peer's row brings beyond what was applied before. KEYS, ARGV[1…6] and the reply: see rights.lua.
--
-- ARGV[7]   the sender's incarnation     ARGV[8]   ours as the sender knows it     ARGV[9]   epoch of the row
-- ARGV[10]  share, ppm     ARGV[11]  ride, thousandths of a token     ARGV[12]  loan, tokens: all cumulative
--
-- Growing the share adds no token beyond the ride. Of a loan the whole tokens that fit under the effective capacity are kept,
-- the rest counts as refused. amount is the loaned tokens kept. Unless the verdict is "applied", nothing has changed and no
-- acknowledgement may leave.

local r = rights()
if r.verdict ~= 'applied' then return report(r) end
r.verdict = meet(r, tonumber(ARGV[7]), tonumber(ARGV[8]))
if r.verdict ~= 'applied' then return report(r) end
if tonumber(ARGV[9]) ~= r.epoch then
  r.verdict = 'foreign'
  return report(r)
end
local b = r.b
local row = { tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]) }
local fresh = {}
for i, x in ipairs(row) do
  if not (x >= 0 and x <= MAX) then
    r.verdict = 'absurd'
    return report(r)
  end
  fresh[i] = math.max(x - r.inn[i], 0)
end
if b.share + r.waiting + fresh[1] > WHOLE then
  r.verdict = 'absurd'
  return report(r)
end
if r.opened and fresh[1] + fresh[2] + fresh[3] == 0 then return report(r) end -- heard before
credit(r, fresh[1])
if b.rule.algorithm == 0 then
  b.tokens = b.tokens + fresh[2] / MILLI
  fit(b, r.env)
  r.amount = math.min(fresh[3], math.max(0, math.floor(math.min(b.eff - b.tokens, MAX))))
  b.tokens = b.tokens + r.amount
else
  fit(b, r.env)
end
for i, x in ipairs(fresh) do r.inn[i] = r.inn[i] + x end
r.inn[4] = r.inn[4] + fresh[3] - r.amount
keep(r)
return report(r)
