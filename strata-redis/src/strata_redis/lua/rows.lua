-- Rows of one thread, as of one moment.
--
-- KEYS  the thread.
-- ARGV  the first row that is asked for, -1 for the latest alone; the last, -1 for the latest; how many bytes may be
--       returned (at least one row is); the row to go on from, -1 to begin with the whole row that the first builds on;
--       the write ID of the row before that.
-- Returns the sequence of the first row returned and of the last one to be returned; then record and state of each row,
-- nil for what is missing.  Nothing when there is no such row, -1 when the thread has begun another life.
local key, first, last, room, from = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local head = redis.call('HGET', key, 'head')
local latest, base = -1, -1
if head then
  latest, base = struct.unpack('>i8i8', head)
end
if from >= 0 then
  local before = redis.call('HGET', key, 'r' .. string.format('%.0f', from - 1))
  if not before or string.sub(before, 9, 16) ~= ARGV[5] then return {-1} end
elseif latest < 0 or first > latest then
  return {}
elseif first < 0 then
  from = base
else
  local record = redis.call('HGET', key, 'r' .. string.format('%.0f', first))
  from = record and struct.unpack('>i8', record) or first
end
if first < 0 or last < 0 or last > latest then last = latest end
local answer = {from, last}
for sequence = from, last do
  local name = string.format('%.0f', sequence)
  local row = redis.call('HMGET', key, 'r' .. name, 's' .. name)
  answer[#answer + 1] = row[1]
  answer[#answer + 1] = row[2]
  room = room - (row[1] and #row[1] or 0) - (row[2] and #row[2] or 0)
  if room <= 0 then break end
end
return answer
