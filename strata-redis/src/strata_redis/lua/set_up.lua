-- Sets a store up, if nobody has, and makes sure that whatever a commit does is allowed.
--
-- KEYS  what is known of the store; a key for trying out, of which nothing stays.
-- ARGV  the format and the number of buckets of a new store; nothing to set up none.
-- Returns format and buckets of the store, nil for none.
--
-- A user who may write rows but not the index would else leave half a commit.
local scratch = KEYS[2]
redis.call('UNLINK', scratch)
for _, command in ipairs({
  {'HSET', scratch, 'a', '1'},
  {'PERSIST', scratch},
  {'HDEL', scratch, 'a'},
  {'ZADD', scratch, '0', 'a'},
  {'ZREM', scratch, 'a'},
  {'INCR', scratch},
}) do
  local done = redis.pcall(unpack(command))
  if type(done) == 'table' and done.err then
    redis.call('UNLINK', scratch)
    return done
  end
end
redis.call('UNLINK', scratch)
if ARGV[1] and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'buckets', ARGV[2])
end
return redis.call('HMGET', KEYS[1], 'format', 'buckets')
