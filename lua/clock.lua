-- The only place where a script learns the time: Redis's own clock, in whole microseconds since 1970 (exact in a double
-- until the year 2255). Tests put another source of now_us in front of the prelude instead of this file.
local function now_us()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
