-- Void: takes in that a peer lives under a higher incarnation. KEYS, ARGV[1…6] and the reply: see rights.lua.
--
-- ARGV[7]  the peer's number
--
-- "applied": the report is the answer, every counter of the pair. "inactive": recorded, and what the peer answered before is
-- forgotten, but a region that re-learns itself has nothing to answer. "outdated": a higher number is known.

local r = rights()
if r.verdict == 'lost' then return report(r) end
local b, number = r.b, tonumber(ARGV[7])
if number < r.known then
  r.verdict = 'outdated'
  return report(r)
end
if r.verdict ~= 'applied' and not r.opened then return report(r) end
if number > r.known or not r.opened then
  r.known = number
  if r.verdict == 'applied' then
    -- The peer takes over what we sent and what we applied, so nothing between us is in flight any more.
    b.held = b.held - (r.out[3] - r.ack[3])
    for i = 1, 3 do r.ack[i] = r.out[i] end
    fit(b, r.env)
  else
    r.out, r.inn, r.ack, r.heard, r.answered = words('', 3), words('', 4), words('', 4), 0, 0
  end
  keep(r)
end
return report(r)
