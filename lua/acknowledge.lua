-- Acknowledge: lifts the holds on what a peer has settled and takes back what it refused. KEYS, ARGV[1…6] and the reply: see
-- rights.lua.
--
-- ARGV[7]   the peer's incarnation     ARGV[8]   ours as the peer knows it     ARGV[9]   epoch
-- ARGV[10]  share     ARGV[11]  ride     ARGV[12]  loan     ARGV[13]  refused: what the peer has applied, cumulative
--
-- amount is the tokens taken back. Unless the verdict is "applied" nothing has changed.

local r = rights()
if r.verdict ~= 'applied' then return report(r) end
if not r.opened then
  r.verdict = 'absurd'
  return report(r)
end
r.verdict = meet(r, tonumber(ARGV[7]), tonumber(ARGV[8]))
if r.verdict ~= 'applied' then return report(r) end
if tonumber(ARGV[9]) ~= r.epoch then
  r.verdict = 'foreign'
  return report(r)
end
local b = r.b
local ack = { tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13]) }
for i = 1, 3 do
  if not (ack[i] >= 0 and ack[i] <= r.out[i]) then r.verdict = 'absurd' end
end
if not (ack[4] >= 0 and ack[4] <= ack[3]) then r.verdict = 'absurd' end
if r.verdict ~= 'applied' then return report(r) end
local news = r.heard == 0
for i, x in ipairs(ack) do news = news or x > r.ack[i] end
if not news then return report(r) end
b.held = b.held - math.max(ack[3] - r.ack[3], 0)
r.amount = math.max(ack[4] - r.ack[4], 0)
for i, x in ipairs(ack) do r.ack[i] = math.max(r.ack[i], x) end
r.heard = 1
if b.rule.algorithm == 0 then b.tokens = b.tokens + r.amount end
fit(b, r.env)
keep(r)
return report(r)
