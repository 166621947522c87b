-- Sets a store up, if nobody has, and makes sure that whatever a commit does is allowed.
--
-- KEYS  what is known of the store; a key for trying out.
-- ARGV  the format and the number of buckets of a new store; nothing to set up none.
-- Returns format and buckets of the store, nil for none.
--
-- A user who may write rows but not the index would leave half a commit; here nothing can be left.
local scratch = KEYS[2]
redis.call('HSET', scratch, 'a', '1')
redis.call('HDEL', scratch, 'a')
redis.call('ZADD', scratch, '0', 'a')
redis.call('ZSCORE', scratch, 'a')
redis.call('ZREM', scratch, 'a')
redis.call('INCR', scratch)
redis.call('PERSIST', scratch)
redis.call('UNLINK', scratch)
if ARGV[1] and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'buckets', ARGV[2])
end
return redis.call('HMGET', KEYS[1], 'format', 'buckets')
