-- Some of one range of a bucket's index, in order: those that every filter passes.
--
-- KEYS  the index.
-- ARGV  1 to walk down, 0 to walk up; the bounds of the range, lower first, as ZRANGEBYLEX takes them; how many to
--       return; how many to look at; how many bytes stand before what is returned of each; then the filters, each as the
--       number of its alternatives, and those: what stands in the index before the place of a thread that passes.
-- Returns how many were looked at; the last of them, empty at the end of the range; what was found, NUL between.
--
-- (time, thread ID) is the same at the end of each entry of a thread, so whether a thread passes is one look-up.
local key, down, lower, upper = KEYS[1], ARGV[1] == '1', ARGV[2], ARGV[3]
local wanted, room, cut = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local filters, at = {}, 7
while at <= #ARGV do
  local alternatives = tonumber(ARGV[at])
  local filter = {}
  for n = 1, alternatives do filter[n] = ARGV[at + n] end
  filters[#filters + 1] = filter
  at = at + alternatives + 1
end

local function passes(place)
  for _, filter in ipairs(filters) do
    local found = false
    for _, prefix in ipairs(filter) do
      if redis.call('ZSCORE', key, prefix .. place) then
        found = true
        break
      end
    end
    if not found then return false end
  end
  return true
end

local found, seen, position = {}, 0, ''
while true do
  local size = math.min(#filters == 0 and wanted - #found or math.max(wanted - #found, 32), room - seen)
  local members
  if down then
    members = redis.call('ZREVRANGEBYLEX', key, upper, lower, 'LIMIT', '0', size)
  else
    members = redis.call('ZRANGEBYLEX', key, lower, upper, 'LIMIT', '0', size)
  end
  for _, member in ipairs(members) do
    seen, position = seen + 1, member
    local place = string.sub(member, cut + 1)
    if passes(place) then
      found[#found + 1] = place
      if #found == wanted then break end
    end
  end
  if #found == wanted or seen >= room then break end
  if #members < size then
    position = ''
    break
  end
  if down then upper = '(' .. position else lower = '(' .. position end
end
return {seen, position, table.concat(found, '\0')}
