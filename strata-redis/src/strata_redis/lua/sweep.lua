-- Takes expired threads of one bucket out of its index.
--
-- KEYS  index and expiring of the bucket; then the threads.
-- ARGV  how many bytes stand before the thread ID in a thread's key.
-- Returns how many were taken out; one that is there after all is passed over.
local index, expiring, skip, swept = KEYS[1], KEYS[2], tonumber(ARGV[1]), 0
for at = 3, #KEYS do
  local thread = string.sub(KEYS[at], skip + 1)
  local noted = redis.call('HGET', expiring, thread)
  if noted and redis.call('EXISTS', KEYS[at]) == 0 then
    local members = cmsgpack.unpack(noted)
    for first = 1, #members, 1000 do
      redis.call('ZREM', index, unpack(members, first, math.min(first + 999, #members)))
    end
    redis.call('HDEL', expiring, thread)
    swept = swept + 1
  end
end
return swept
