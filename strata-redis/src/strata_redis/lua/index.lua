-- What the index of a bucket holds for a thread, and how it is changed: see strata_redis._index.  Stands before commit.lua.
local call, sub, format = redis.call, string.sub, string.format
local EPOCH = '8000000000000000'  -- microsecond 0 as a time of the index: that of a head without rows

-- Returns the time at which a thread stands: a running one moves about once in a second.
local function time_of(facts, updated)
  return sub(facts, 1, 8) == 'running\0' and sub(updated, 1, 11) .. '00000' or updated
end

local function is_finished(facts)
  return sub(facts, 1, 10) == 'completed\0' or sub(facts, 1, 6) == 'ended\0'
end

-- What the index holds for facts, without the place at the end of each.
local function prefixes_of(facts)
  local parts, count = {}, 0
  for part in string.gmatch(facts, '([^%z]*)%z') do
    count = count + 1
    parts[count] = part
  end
  local prefixes = {'a', 's' .. parts[1] .. '\0'}
  if parts[2] ~= '' then prefixes[3] = 'd' .. parts[2] end
  if parts[3] ~= '' then  -- both IDs have a mark before them
    prefixes[#prefixes + 1] = 'g' .. sub(parts[3], 2) .. '\0'
    if parts[4] ~= '' then prefixes[#prefixes + 1] = 'v' .. sub(parts[3], 2) .. '\0' .. sub(parts[4], 2) .. '\0' end
  end
  for at = 5, count, 2 do prefixes[#prefixes + 1] = 'm' .. parts[at] .. '\0' .. parts[at + 1] .. '\0' end
  return prefixes
end

local function lease_of(head, thread)
  if head and head.token ~= 0 then return 'l' .. format('%017d', head.expires) .. thread end
end

local function members_of(head, facts, thread)
  if not head then return {} end
  local members = {}
  if head.sequence < 0 then
    members[1] = 'r' .. EPOCH .. thread
  else
    local place = time_of(facts, head.updated) .. thread
    for at, prefix in ipairs(prefixes_of(facts)) do members[at] = prefix .. place end
  end
  members[#members + 1] = lease_of(head, thread)
  return members
end

local function change_index(index, gone, come)
  for first = 1, #gone, 1000 do call('ZREM', index, unpack(gone, first, math.min(first + 999, #gone))) end
  local scored = {}
  for at, member in ipairs(come) do scored[2 * at - 1], scored[2 * at] = '0', member end
  for first = 1, #scored, 1000 do call('ZADD', index, unpack(scored, first, math.min(first + 999, #scored))) end
end

local function exchange(index, old, new)
  if #old == 0 then return change_index(index, old, new) end
  local known, gone, come = {}, {}, {}
  for _, member in ipairs(old) do known[member] = true end
  for _, member in ipairs(new) do
    if known[member] then known[member] = false else come[#come + 1] = member end
  end
  for _, member in ipairs(old) do
    if known[member] then gone[#gone + 1] = member end
  end
  change_index(index, gone, come)
end

-- The same for what changes nothing that is listed but the time, or the lease.
local function exchange_places(index, facts, head, new, thread)
  local gone, come = {}, {}
  if head.updated ~= new.updated then
    local place, new_place = time_of(facts, head.updated) .. thread, time_of(facts, new.updated) .. thread
    if place ~= new_place then
      for at, prefix in ipairs(prefixes_of(facts)) do gone[at], come[at] = prefix .. place, prefix .. new_place end
    end
  end
  local lease, new_lease = lease_of(head, thread), lease_of(new, thread)
  if lease ~= new_lease then
    gone[#gone + 1] = lease
    come[#come + 1] = new_lease
  end
  change_index(index, gone, come)
end
