-- Commits: each is judged as strata_core.rows.decide judges it, and then done or refused.  Before this stands index.lua.
--
-- KEYS  index, tokens and expiring of each bucket; then the thread of each item, bucket by bucket.
-- ARGV  packed: how long finished threads live in milliseconds, 0 for ever; whether a repeated item is written again; how
--       many buckets there are, and how many of them take part; of each of those its number, how many bytes stand before
--       the thread ID in its threads' keys, and how many items it has.  Then for each item its terms, packed, with the
--       owner of a lease that it takes behind them; and, with a row, facts, marks, state, version and envelope of the row,
--       and digest and content of each blob.
-- Returns what each item came to, packed, one behind the other; then, in order, what belongs to some of them: see
-- strata_redis._commit.
--
-- Everything is read before anything is written, so that a key of a wrong type, a full memory or a replica is told
-- before the first write.  No line says "#!lua", which Redis 6.2 does not know; in a script without it, Redis looks at
-- its memory until the script has written, which is what is wanted here: a purge works when the memory is full, and a
-- save fails whole.
local pack, unpacked, find = struct.pack, struct.unpack, string.find
local ANY, NOTHING = -2, -1
local TAKE, EXTEND, DROP = 1, 2, 3
local DONE, REPEATED, CHANGED, HELD, LOST, CLOSING, IMMORTAL = 0, 1, 2, 3, 4, 5, 6
local TERMS = '>c8i8Bc8i8i8BBBBBBi4c16'
local HEAD = '>i8i8i8i8BBc8c16Bc0I4c0'  -- and the marks
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local finished_ttl, touches, all_buckets, groups, header_at = unpacked('>i8Bi4i4', ARGV[1])

-- ------------------------------------------------------------------------------------------------------------- reading

local function item_from(text)
  local write_id, after, has_after_id, after_id, token, ttl, lease, free, closes, erase, external, complete, blobs,
    updated, at = unpacked(TERMS, text)
  return {  -- 16 fields: one more doubles the table
    write_id = write_id, after = after, after_id = has_after_id == 1 and after_id, token = token, ttl = ttl,
    lease = lease, free = free == 1, closes = closes == 1, erase = erase == 1, external = external == 1,
    complete = complete == 1, blobs = blobs, updated = updated, owner = lease == TAKE and sub(text, at), row = false,
    bucket = false,
  }
end

local function head_from(text)
  local sequence, base, token, expires, external, closing, lease_id, updated, ids, owner, at = unpacked(HEAD, text)
  return {
    sequence = sequence, base = base, token = token, expires = expires, external = external, closing = closing,
    lease_id = lease_id, updated = updated, ids = ids, owner = owner, marks = sub(text, at),
  }
end

local function text_of(head)
  return pack(HEAD, head.sequence, head.base, head.token, head.expires, head.external, head.closing, head.lease_id,
    head.updated, #head.ids, head.ids, #head.owner, head.owner) .. head.marks
end

-- ------------------------------------------------------------------------------------------------------------- judging

-- Returns why an item is not done now: that it was done before, with what it came to, or the reason of its refusal.
local function judge(item, head)
  if not head then
    return item.token ~= 0 and LOST or item.after >= 0 and CHANGED or nil
  end
  local live = head.token ~= 0 and head.expires > now
  local own = live and head.lease_id == item.write_id
  if item.row then
    local from = find(head.ids, item.write_id, 1, true)
    while from and from % 8 ~= 1 do from = find(head.ids, item.write_id, from + 1, true) end  -- across two
    if from then
      local sequence = head.sequence - (from - 1) / 8
      -- A lease taken with the row may have passed to somebody else: never hand out theirs.
      if item.lease == TAKE and not own then return REPEATED, sequence, 0, 0 end
      return REPEATED, sequence, head.token, head.expires
    end
  elseif item.lease == TAKE and own then
    return REPEATED, head.sequence, head.token, head.expires
  end
  if item.token ~= 0 then
    if not live or head.token ~= item.token then return LOST end
  elseif head.closing == 1 and not (item.lease == TAKE and item.closes and not live) then
    return CLOSING
  elseif live and (item.free or item.lease == TAKE) then
    return HELD
  end
  if item.after ~= ANY and (item.after ~= head.sequence
      or (item.after_id and sub(head.ids, 1, 8) ~= item.after_id)) then
    return CHANGED
  end
end

-- Returns the head as an item leaves it, nil for none.
local function next_head(item, head)
  local new = {
    sequence = NOTHING, base = NOTHING, token = 0, expires = 0, external = 0, closing = 0, lease_id = '\0\0\0\0\0\0\0\0',
    updated = EPOCH, ids = '', owner = '', marks = '',
  }
  if head then
    for field, value in pairs(head) do new[field] = value end
  end
  if item.lease == TAKE then
    new.token = call('INCR', item.bucket.tokens) * all_buckets + item.bucket.number  -- no other bucket gives the same
    new.owner, new.expires, new.lease_id = item.owner, now + item.ttl, item.write_id
    if item.closes then new.closing = 1 end
  elseif item.lease == EXTEND then
    new.expires = now + item.ttl
  elseif item.lease == DROP then
    new.token, new.owner, new.expires, new.lease_id, new.closing = 0, '', 0, '\0\0\0\0\0\0\0\0', 0
  end
  if item.external then new.external = 1 end
  if item.erase then
    if item.lease ~= TAKE then return nil end
    new.sequence, new.base, new.ids, new.updated, new.marks = NOTHING, NOTHING, '', EPOCH, ''
  elseif item.row then
    new.sequence, new.updated, new.marks = new.sequence + 1, item.updated, ARGV[item.row + 1]
    if item.complete then new.base = new.sequence end
    new.ids = sub(item.write_id .. new.ids, 1, 64)
  elseif new.sequence == NOTHING and new.token == 0 then
    return nil
  end
  return new
end

-- ------------------------------------------------------------------------------------------------------------- writing

-- Lets a thread expire; what fails is returned, and then it lives for ever.
local function keep_until(key, expiring, thread, deadline, members)
  local done = redis.pcall('HSET', expiring, thread, cmsgpack.pack(members))
  if type(done) ~= 'table' then done = redis.pcall('PEXPIREAT', key, format('%d', deadline / 1000)) end
  if type(done) ~= 'table' then return nil end
  redis.pcall('PERSIST', key)
  redis.pcall('HDEL', expiring, thread)
  return done.err
end

local function deadline_of(item, head, new, facts, noted)
  if not new or item.erase then return nil end
  if item.row then
    if finished_ttl == 0 or new.external == 1 or not is_finished(facts) then return nil end
    return (math.floor(now / 1000) + finished_ttl) * 1000
  end
  return noted and head and tonumber(string.match(noted[1], '^x(%d+)')) or nil  -- as it was
end

local function write_row(key, item, new, facts)
  local row = item.row
  local name = format('%d', new.sequence)
  local record = pack('>i8c8', new.base, item.write_id) .. ARGV[row + 3]
  if facts == ARGV[row] then
    call('HSET', key, 'head', text_of(new), 'r' .. name, record, 's' .. name, ARGV[row + 2])
  else
    call('HSET', key, 'head', text_of(new), 'facts', ARGV[row], 'r' .. name, record, 's' .. name, ARGV[row + 2])
  end
  for blob = row + 4, row + 2 + 2 * item.blobs, 2 do call('HSET', key, ARGV[blob], ARGV[blob + 1]) end
end

-- Does an item; returns its head then, and what went wrong with its expiry.  `noted` is what the index holds for a thread
-- that will expire or has.
local function apply(key, item, head, facts, noted)
  local new = next_head(item, head)
  local new_facts = item.row and ARGV[item.row] or facts
  local thread, index, expiring = sub(key, item.bucket.skip + 1), item.bucket.index, item.bucket.expiring
  local deadline = deadline_of(item, head, new, new_facts, noted)
  if head and (item.erase or not new) then
    call('UNLINK', key)
  elseif head and noted and item.row and not deadline then
    call('PERSIST', key)
  end
  if item.row then
    write_row(key, item, new, facts)
  elseif new then
    call('HSET', key, 'head', text_of(new))
  end
  local warning
  if deadline then
    local members = members_of(new, new_facts, thread)
    table.insert(members, 1, 'x' .. format('%017d', deadline) .. thread)
    warning = keep_until(key, expiring, thread, deadline, members)
    if warning then table.remove(members, 1) end
    exchange(index, noted or members_of(head, facts, thread), members)
  elseif noted then
    call('HDEL', expiring, thread)
    exchange(index, noted, members_of(new, new_facts, thread))
  elseif head and new and not item.erase and facts == new_facts and (not item.row or head.sequence >= 0) then
    exchange_places(index, facts, head, new, thread)
  else
    exchange(index, members_of(head, facts, thread), members_of(new, new_facts, thread))
  end
  return new, warning
end

-- -------------------------------------------------------------------------------------------------------- all of a batch

local items, texts, heads, facts, notes, plain = {}, {}, {}, {}, {}, {}
local at, arg = 0, 2
for group = 1, groups do
  local number, skip, size
  number, skip, size, header_at = unpacked('>i4i4i4', ARGV[1], header_at)
  local bucket = {
    number = number, skip = skip, index = KEYS[3 * group - 2], tokens = KEYS[3 * group - 1],
    expiring = KEYS[3 * group], is_checked = false, takes = false,
  }
  for _ = 1, size do
    at = at + 1
    local item, key = item_from(ARGV[arg]), KEYS[3 * groups + at]
    if item.blobs >= 0 then
      item.row = arg + 1
      arg = arg + 5 + 2 * item.blobs
    else
      arg = arg + 1
    end
    local found = call('HMGET', key, 'head', 'facts')
    local text, known = found[1], found[2]
    local head = text and head_from(text)
    items[at], texts[at], heads[at], facts[at], notes[at], item.bucket = item, text, head, known, false, bucket
    -- A running thread that goes on running, and leaves the index as it is.
    plain[at] = item.row and item.lease == 0 and known == ARGV[item.row] and sub(known, 1, 8) == 'running\0'
      and sub(head.updated, 1, 11) == sub(item.updated, 1, 11)
    if not plain[at] then
      -- Only a finished thread expires; one that is gone may have.
      notes[at] = (not text or (known and is_finished(known))) and call('HGET', bucket.expiring, sub(key, skip + 1))
      if not bucket.is_checked then
        bucket.is_checked = true
        call('ZCARD', bucket.index)
      end
    end
    if item.lease == TAKE and not bucket.takes then
      bucket.takes = true
      if not tonumber(call('GET', bucket.tokens) or '0') then
        return redis.error_reply('WRONGTYPE ' .. bucket.tokens .. ' is no number')
      end
    end
  end
end

local answers, more = {}, {''}
for n = 1, at do
  local item, head = items[n], heads[n]
  local key = KEYS[3 * groups + n]
  local verdict, sequence, token, expires = judge(item, head)
  if not verdict then
    local new, warning = head, nil
    if plain[n] then
      new.sequence, new.updated, new.marks = new.sequence + 1, item.updated, ARGV[item.row + 1]
      new.ids = sub(item.write_id .. new.ids, 1, 64)
      if item.complete then new.base = new.sequence end
      if item.external then new.external = 1 end
      write_row(key, item, new, facts[n])
    else
      new, warning = apply(key, item, head, facts[n], notes[n] and cmsgpack.unpack(notes[n]) or nil)
    end
    if warning then more[#more + 1] = warning end
    answers[n] = pack('>Bi8i8i8', warning and IMMORTAL or DONE, new and new.sequence or NOTHING, new and new.token or 0,
      new and new.expires or 0)
  elseif verdict == REPEATED then
    -- So that whoever waits for the replicas waits for this, too.
    if touches == 1 then call('HSET', key, 'head', texts[n]) end
    answers[n] = pack('>Bi8i8i8', REPEATED, sequence, token, expires)
  else
    answers[n] = pack('>Bi8i8i8', verdict, now, 0, 0)
    more[#more + 1] = texts[n] or ''
  end
end
more[1] = table.concat(answers)
return more
