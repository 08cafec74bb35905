-- A token bucket that is refilled when somebody looks: [capacity, rate, tokens, last refill in ms] as JSON.
-- KEYS[1] the bucket; ARGV capacity, tokens per second, tokens wanted, the caller's time in ms.
-- Returns whether they were taken, how many whole tokens are left, and in how many ms there are enough
-- (-1: never).
local capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local amount, now = tonumber(ARGV[3]), tonumber(ARGV[4])

local tokens, last = capacity, now
local stored = redis.call('GET', KEYS[1])
if stored then
  local whole, bucket = pcall(cjson.decode, stored)
  if whole and type(bucket) == 'table' and tonumber(bucket[3]) and tonumber(bucket[4]) then
    tokens, last = bucket[3], bucket[4]
  end
end
-- A caller whose clock is behind that of the one before refills nothing.
if now > last then
  tokens = math.min(capacity, tokens + (now - last) / 1000 * rate)
  last = now
end

local allowed, retry = 0, 0
if tokens >= amount then
  tokens = tokens - amount
  allowed = 1
elseif rate > 0 then
  retry = math.ceil((amount - tokens) / rate * 1000)
else
  retry = -1
end

local life = 60
if rate > 0 then life = math.ceil(capacity / rate) + 60 end
redis.call('SET', KEYS[1], cjson.encode({ capacity, rate, tokens, last }), 'EX', life)
return { allowed, math.floor(tokens), retry }
