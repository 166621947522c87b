-- The heads of some threads of one bucket, as of one moment, with the time of that moment.
--
-- KEYS  the threads.
-- ARGV  1 for the record of each thread's latest row, too; else 0.
-- Returns the time in microseconds since 1970; then head, facts and record of each thread, nil for what is not there.
local time = redis.call('TIME')
local answer = {string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))}
for _, key in ipairs(KEYS) do
  local found = redis.call('HMGET', key, 'head', 'facts')
  answer[#answer + 1] = found[1]
  answer[#answer + 1] = found[2]
  local sequence = ARGV[1] == '1' and found[1] and struct.unpack('>i8', found[1])
  answer[#answer + 1] = sequence and redis.call('HGET', key, 'r' .. string.format('%d', sequence)) or false
end
return answer
