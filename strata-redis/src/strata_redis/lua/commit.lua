-- The commits of one bucket: each is judged as strata_core.rows.decide judges it, and then done or refused.
--
-- KEYS  index, tokens, expiring of the bucket; then the thread of each item.
-- ARGV  the bucket's number, and how many there are; how many bytes stand before the thread ID in a thread's key; how
--       long finished threads live in milliseconds, 0 for ever; then for each item its terms, the owner of a lease it
--       takes, and, with a row, facts, version, envelope and body of the row, and digest and content of each blob.
-- Returns a line for each item: see strata_redis._commit.
--
-- Everything is read before anything is written, so that a key of a wrong type, a full memory or a replica is told
-- before the first write.  No line says "#!lua", which Redis 6.2 does not know; in a script without it, Redis looks at
-- its memory until the script has written, which is what is wanted here: a purge works when the memory is full, and a
-- save fails whole.
local index, tokens, expiring = KEYS[1], KEYS[2], KEYS[3]
local bucket, buckets, skip, finished_ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local ANY, NOTHING = -2, -1
local EPOCH = '8000000000000000'  -- microsecond 0 as in facts: the time in the place of a head without rows

local function whole(number) return string.format('%d', number) end

-- ------------------------------------------------------------------------------------------------------------- reading

local function item_at(arg)
  local item = {owner = ARGV[arg + 1]}
  local after, free, closes, erase, external, complete, blobs
  item.write_id, after, item.after_id, item.token, free, item.lease, item.ttl, closes, erase, external, complete, blobs =
    string.match(ARGV[arg], '^(%x+) (%-?%d+) (%x*) (%-?%d+) ([01]) ([0123]) (%d+) ([01]) ([01]) ([01]) ([01]) (%-?%d+)$')
  item.after, item.blobs = tonumber(after), tonumber(blobs)
  item.free, item.closes, item.erase, item.external = free == '1', closes == '1', erase == '1', external == '1'
  item.complete, item.takes = complete == '1', item.lease == '1'
  if item.blobs >= 0 then
    item.row = arg + 2
    return item, arg + 6 + 2 * item.blobs
  end
  return item, arg + 2
end

local function head_from(text)
  local head = {}
  local sequence, base, expires
  sequence, base, head.token, expires, head.external, head.closing, head.lease_id, head.ids, head.owner =
    string.match(text, '^(%-?%d+) (%-?%d+) (%d+) (%d+) ([01]) ([01]) (%x*) (%x*) (.*)$')
  head.sequence, head.base, head.expires = tonumber(sequence), tonumber(base), tonumber(expires)
  return head
end

local function text_of(head)
  return table.concat({
    whole(head.sequence), whole(head.base), head.token, whole(head.expires), head.external, head.closing, head.lease_id,
    head.ids, head.owner,
  }, ' ')
end

-- ------------------------------------------------------------------------------------------------------------- judging

-- Returns why an item is not done now: that it was done before, with what it came to, or the reason of its refusal.
local function judge(item, head)
  if not head then
    return item.token ~= '0' and 'lost' or item.after >= 0 and 'changed' or nil
  end
  local live = head.token ~= '0' and head.expires > now
  local own = live and head.lease_id == item.write_id
  if item.row then
    local from = string.find(head.ids, item.write_id, 1, true)
    while from and from % 16 ~= 1 do from = string.find(head.ids, item.write_id, from + 1, true) end  -- across two
    if from then
      local sequence = head.sequence - (from - 1) / 16
      -- A lease taken with the row may have passed to somebody else: never hand out theirs.
      if item.takes and not own then return 'repeated', sequence, '0', 0 end
      return 'repeated', sequence, head.token, head.expires
    end
  elseif item.takes and own then
    return 'repeated', head.sequence, head.token, head.expires
  end
  if item.token ~= '0' then
    if not live or head.token ~= item.token then return 'lost' end
  elseif head.closing == '1' and not (item.takes and item.closes and not live) then
    return 'closing'
  elseif live and (item.free or item.takes) then
    return 'held'
  end
  if item.after ~= ANY and (item.after ~= head.sequence
      or (item.after_id ~= '' and string.sub(head.ids, 1, 16) ~= item.after_id)) then
    return 'changed'
  end
end

-- Returns the head as an item leaves it, nil for none.
local function next_head(item, head)
  local new = {
    sequence = NOTHING, base = NOTHING, token = '0', expires = 0, external = '0', closing = '0', lease_id = '', ids = '',
    owner = '',
  }
  if head then
    for field, value in pairs(head) do new[field] = value end
  end
  if item.takes then
    new.token = whole(redis.call('INCR', tokens) * buckets + bucket)  -- no other bucket gives the same
    new.owner, new.expires, new.lease_id = item.owner, now + tonumber(item.ttl), item.write_id
    if item.closes then new.closing = '1' end
  elseif item.lease == '2' then
    new.expires = now + tonumber(item.ttl)
  elseif item.lease == '3' then
    new.token, new.owner, new.expires, new.lease_id, new.closing = '0', '', 0, '', '0'
  end
  if item.external then new.external = '1' end
  if item.erase then
    if not item.takes then return nil end
    new.sequence, new.base, new.ids = NOTHING, NOTHING, ''
  elseif item.row then
    new.sequence = new.sequence + 1
    if item.complete then new.base = new.sequence end
    new.ids = string.sub(item.write_id .. new.ids, 1, 128)
  elseif new.sequence == NOTHING and new.token == '0' then
    return nil
  end
  return new
end

-- ------------------------------------------------------------------------------------------------------------ the index

-- What the index holds for facts, without the place at the end of each: see strata_redis._index.
local function prefixes_of(facts)
  local _, state, due, graph, version, metadata = unpack(cjson.decode(facts))
  local prefixes = {'a', 's' .. state .. '\0'}
  if due ~= cjson.null then prefixes[3] = 'd' .. due end
  if graph ~= cjson.null then
    prefixes[#prefixes + 1] = 'g' .. graph .. '\0'
    if version ~= cjson.null then prefixes[#prefixes + 1] = 'v' .. graph .. '\0' .. version .. '\0' end
  end
  for key, value in pairs(metadata) do
    if string.sub(key, 1, 7) ~= 'strata.' then prefixes[#prefixes + 1] = 'm' .. key .. '\0' .. value .. '\0' end
  end
  return prefixes
end

local function lease_of(head, thread)
  if head and head.token ~= '0' then return 'l' .. string.format('%017d', head.expires) .. thread end
end

local function members_of(head, facts, thread)
  if not head then return {} end
  local members = {}
  if head.sequence < 0 then
    members[1] = 'r' .. EPOCH .. thread
  else
    local place = string.sub(facts, 3, 18) .. thread
    for at, prefix in ipairs(prefixes_of(facts)) do members[at] = prefix .. place end
  end
  members[#members + 1] = lease_of(head, thread)
  return members
end

local function change_index(gone, come)
  for first = 1, #gone, 1000 do redis.call('ZREM', index, unpack(gone, first, math.min(first + 999, #gone))) end
  local scored = {}
  for at, member in ipairs(come) do scored[2 * at - 1], scored[2 * at] = '0', member end
  for first = 1, #scored, 1000 do redis.call('ZADD', index, unpack(scored, first, math.min(first + 999, #scored))) end
end

local function exchange(old, new)
  local known, gone, come = {}, {}, {}
  for _, member in ipairs(old) do known[member] = true end
  for _, member in ipairs(new) do
    if known[member] then known[member] = false else come[#come + 1] = member end
  end
  for _, member in ipairs(old) do
    if known[member] then gone[#gone + 1] = member end
  end
  change_index(gone, come)
end

-- The same for what most commits are: a row that changes nothing but the time, or a lease.
local function exchange_places(head, facts, new, new_facts, thread)
  local gone, come = {}, {}
  if facts and facts ~= new_facts then
    local place, new_place = string.sub(facts, 3, 18) .. thread, string.sub(new_facts, 3, 18) .. thread
    for at, prefix in ipairs(prefixes_of(new_facts)) do gone[at], come[at] = prefix .. place, prefix .. new_place end
  end
  local lease, new_lease = lease_of(head, thread), lease_of(new, thread)
  if lease ~= new_lease then
    gone[#gone + 1] = lease
    come[#come + 1] = new_lease
  end
  change_index(gone, come)
end

-- Lets a thread expire; what fails is returned, and then it lives for ever.
local function keep_until(key, thread, deadline, members)
  local done = redis.pcall('HSET', expiring, thread, cmsgpack.pack(members))
  if type(done) ~= 'table' then done = redis.pcall('PEXPIREAT', key, whole(deadline / 1000)) end
  if type(done) ~= 'table' then return nil end
  redis.pcall('PERSIST', key)
  redis.pcall('HDEL', expiring, thread)
  return done.err
end

-- ------------------------------------------------------------------------------------------------------------- writing

local function deadline_of(item, head, new, facts, noted)
  if not new or item.erase then return nil end
  if item.row then
    if finished_ttl == 0 or new.external == '1' then return nil end
    local state = cjson.decode(facts)[2]
    return (state == 'completed' or state == 'ended') and (math.floor(now / 1000) + finished_ttl) * 1000 or nil
  end
  return noted and head and tonumber(string.match(noted[1], '^x(%d+)')) or nil  -- as it was
end

local function write_thread(key, item, new)
  if not item.row then
    redis.call('HSET', key, 'head', text_of(new))
    return
  end
  local name, row = whole(new.sequence), item.row
  local record = whole(new.base) .. ' ' .. ARGV[row + 1] .. ' ' .. item.write_id .. ' ' .. ARGV[row + 2]
  redis.call('HSET', key, 'head', text_of(new), 'facts', ARGV[row], 'r' .. name, record, 's' .. name, ARGV[row + 3])
  for blob = row + 4, row + 2 + 2 * item.blobs, 2 do redis.call('HSET', key, ARGV[blob], ARGV[blob + 1]) end
end

-- Does an item; returns what it came to.  `noted` is what the index holds for a thread that will expire or has.
local function apply(key, thread, item, head, facts, noted)
  local new = next_head(item, head)
  local new_facts = item.row and ARGV[item.row] or facts
  local deadline = deadline_of(item, head, new, new_facts, noted)
  if head and (item.erase or not new) then
    redis.call('UNLINK', key)
  elseif head and noted and item.row and not deadline then
    redis.call('PERSIST', key)
  end
  if new then write_thread(key, item, new) end
  local warning
  if deadline then
    local members = members_of(new, new_facts, thread)
    table.insert(members, 1, 'x' .. string.format('%017d', deadline) .. thread)
    warning = keep_until(key, thread, deadline, members)
    if warning then table.remove(members, 1) end
    exchange(noted or members_of(head, facts, thread), members)
  elseif noted then
    redis.call('HDEL', expiring, thread)
    exchange(noted, members_of(new, new_facts, thread))
  elseif head and new and not item.erase and (not item.row
      or (head.sequence >= 0 and string.sub(facts, 19) == string.sub(new_facts, 19))) then
    exchange_places(head, facts, new, new_facts, thread)
  else
    exchange(members_of(head, facts, thread), members_of(new, new_facts, thread))
  end
  if not new then return 'committed -1 0 0' end
  local done = 'committed ' .. whole(new.sequence) .. ' ' .. new.token .. ' ' .. whole(new.expires)
  return warning and done .. ' ' .. warning or done
end

local items, arg, takes = {}, 5, false
for at = 4, #KEYS do
  items[at], arg = item_at(arg)
  takes = takes or items[at].takes
end
redis.call('ZCARD', index)
local any_expires = redis.call('HLEN', expiring) > 0
if takes and not tonumber(redis.call('GET', tokens) or '0') then
  return redis.error_reply('WRONGTYPE ' .. tokens .. ' is no number')
end
local heads, facts, notes = {}, {}, {}
for at = 4, #KEYS do
  local found = redis.call('HMGET', KEYS[at], 'head', 'facts')
  heads[at], facts[at] = found[1], found[2]
  notes[at] = any_expires and redis.call('HGET', expiring, string.sub(KEYS[at], skip + 1))
end

local answers = {}
for at = 4, #KEYS do
  local item, text = items[at], heads[at]
  local head = text and head_from(text) or nil
  local verdict, sequence, token, expires = judge(item, head)
  local answer
  if not verdict then
    local thread = string.sub(KEYS[at], skip + 1)
    answer = apply(KEYS[at], thread, item, head, facts[at], notes[at] and cmsgpack.unpack(notes[at]) or nil)
  elseif verdict == 'repeated' then
    answer = 'repeated ' .. whole(sequence) .. ' ' .. token .. ' ' .. whole(expires)
  else
    answer = verdict .. ' ' .. whole(now) .. (text and ' ' .. text or '')
  end
  answers[#answers + 1] = answer
end
return answers
