-- Life: keeps, in the server's own data, which run of the server the data belongs to, so that every gateway learns when data was
-- lost, also one that has only just started. It needs no bucket.
--
-- KEYS[1]  the record. Fields: run; born, when this life was first seen, and lost, when the data before it was lost (0: never),
--          both in milliseconds of Redis's clock
-- ARGV[1]  run id of the server
-- ARGV[2]  run id that the caller last saw here; empty if none
--
-- Reply: lost.
--
-- A record of another run is that of a copy: restored from disk, or replicated to this server before it was promoted; what was
-- written after the copy is lost. No record at all is the first start, unless the caller knows better: then all is lost.

local f = redis.call('HMGET', KEYS[1], 'run', 'born', 'lost')
local run, born, lost = f[1], f[2], f[3]
if run ~= ARGV[1] then
  born = string.format('%.3f', now_us() / 1000)
  lost = (run or ARGV[2] ~= '') and born or '0'
  redis.call('HSET', KEYS[1], 'run', ARGV[1], 'born', born, 'lost', lost)
elseif lost == '0' and ARGV[2] ~= '' and ARGV[2] ~= run then
  lost = born
  redis.call('HSET', KEYS[1], 'lost', lost)
end
return lost
