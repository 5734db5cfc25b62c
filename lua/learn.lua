-- Learn: takes a peer's answer to the present incarnation. KEYS, ARGV[1…6] and the reply: see rights.lua.
--
-- ARGV[7]   the peer's incarnation     ARGV[8]  ours, which it answers     ARGV[9]  epoch
-- ARGV[10…12]  what the peer has sent     ARGV[13…16]  what it has received     ARGV[17…20]  what it knows we have received

local r = rights()
if r.verdict == 'lost' then return report(r) end
if r.phase ~= 'relearning' or not r.opened then
  r.verdict = 'inactive'
  return report(r)
end
local peer = tonumber(ARGV[7])
r.verdict = meet(r, math.max(peer, r.known), tonumber(ARGV[8]))
if peer < r.known then r.verdict = 'outdated' end
if r.verdict == 'ahead' and tonumber(ARGV[8]) == r.number then r.verdict = 'applied' end
if r.verdict ~= 'applied' then return report(r) end
local n = {}
for i = 10, 20 do n[i] = tonumber(ARGV[i]) end
r.known, r.epoch, r.heard, r.answered = peer, tonumber(ARGV[9]), 1, 1
r.inn = { n[10], n[11], n[12], n[20] }
r.out = { n[13], n[14], n[15] }
r.ack = { n[13], n[14], n[15], n[16] }
keep(r)
return report(r)
