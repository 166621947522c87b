-- The commits of one bucket: each is judged as strata_core.rows.decide judges it, and then done or refused.
--
-- KEYS  index, tokens, expiring of the bucket; then the thread of each item.
-- ARGV  the bucket's number, and how many there are; how many bytes stand before the thread ID in a thread's key; how
--       long finished threads live in milliseconds, 0 for ever; then for each item its terms, the owner of a lease it takes, and, with a row, facts, version,
--       envelope and body of the row, and digest and content of each blob.
-- Returns a line for each item: see `strata_redis._commit`.
--
-- Everything is read before anything is written, so that a key of a wrong type, a full memory or a replica is told
-- before the first write.  No line says "#!lua", which Redis 6.2 does not know; in a script without it, Redis looks at
-- its memory until the script has written, which is what is wanted here: a purge works when the memory is full, and a
-- save fails whole.
local index, tokens, expiring = KEYS[1], KEYS[2], KEYS[3]
local bucket, buckets, skip, finished_ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local EPOCH = '8000000000000000'  -- microsecond 0 as in facts: the place of a head without rows

local function whole(number) return string.format('%.0f', number) end

-- What the index holds for a thread's facts: see strata_redis._index.
local function list_facts(into, thread, sequence, facts)
  if sequence < 0 then
    into['r' .. EPOCH .. thread] = true
    return
  end
  local state, updated, due, graph, version, metadata = unpack(cjson.decode(facts))
  local place = updated .. thread
  into['a' .. place] = true
  into['s' .. state .. '\0' .. place] = true
  if due ~= cjson.null then into['d' .. due .. place] = true end
  if graph ~= cjson.null then
    into['g' .. graph .. '\0' .. place] = true
    if version ~= cjson.null then into['v' .. graph .. '\0' .. version .. '\0' .. place] = true end
  end
  for key, value in pairs(metadata) do
    if string.sub(key, 1, 7) ~= 'strata.' then into['m' .. key .. '\0' .. value .. '\0' .. place] = true end
  end
end

local function list_lease(into, thread, token, expires)
  if token ~= '0' then into['l' .. string.format('%017.0f', expires) .. thread] = true end
end

local function change_index(old, new)
  local gone, come = {}, {}
  for member in pairs(old) do
    if not new[member] then gone[#gone + 1] = member end
  end
  for member in pairs(new) do
    if not old[member] then
      come[#come + 1] = '0'
      come[#come + 1] = member
    end
  end
  for first = 1, #gone, 1000 do redis.call('ZREM', index, unpack(gone, first, math.min(first + 999, #gone))) end
  for first = 1, #come, 1000 do redis.call('ZADD', index, unpack(come, first, math.min(first + 999, #come))) end
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

-- Read everything.
redis.call('ZCARD', index)
if not tonumber(redis.call('GET', tokens) or '0') then return redis.error_reply('WRONGTYPE ' .. tokens .. ' is no number') end
local heads, facts, leftovers = {}, {}, {}
for at = 4, #KEYS do
  local found = redis.call('HMGET', KEYS[at], 'head', 'facts')
  heads[at], facts[at] = found[1], found[2]
  leftovers[at] = redis.call('HGET', expiring, string.sub(KEYS[at], skip + 1))
end

-- Judge and write, item by item.
local answers, arg = {}, 5
for at = 4, #KEYS do
  local key, text, old_facts, leftover = KEYS[at], heads[at], facts[at], leftovers[at]
  local thread = string.sub(key, skip + 1)
  local write_id, after, after_id, asked, free, kind, ttl, closes, erase, outside, complete, blobs = string.match(
    ARGV[arg], '^(%x+) (%-?%d+) (%x*) (%-?%d+) ([01]) ([0123]) (%d+) ([01]) ([01]) ([01]) ([01]) (%-?%d+)$')
  local taker = ARGV[arg + 1]
  arg = arg + 2
  after, blobs = tonumber(after), tonumber(blobs)
  local has_row, takes, row = blobs >= 0, kind == '1', arg
  if has_row then arg = arg + 4 + 2 * blobs end

  local sequence, base, token, expires, external, closing, lease_id, ids, owner = -1, -1, '0', 0, '0', '0', '', '', ''
  if text then
    sequence, base, token, expires, external, closing, lease_id, ids, owner =
      string.match(text, '^(%-?%d+) (%-?%d+) (%d+) (%d+) ([01]) ([01]) (%x*) (%x*) (.*)$')
    sequence, base, expires = tonumber(sequence), tonumber(base), tonumber(expires)
  end
  local live = token ~= '0' and expires > now
  local own = live and lease_id == write_id
  local refusal, repeated
  if text and has_row then
    for from = 1, #ids, 16 do
      if string.sub(ids, from, from + 15) == write_id then
        repeated = sequence - (from - 1) / 16
        break
      end
    end
  elseif text and takes and own then
    repeated = sequence
  end
  if repeated then
    if takes and not own then
      answers[#answers + 1] = 'repeated ' .. whole(repeated) .. ' 0 0'
    else
      answers[#answers + 1] = 'repeated ' .. whole(repeated) .. ' ' .. token .. ' ' .. whole(expires)
    end
  else
    if asked ~= '0' then
      if not live or token ~= asked then refusal = 'lost' end
    elseif closing == '1' and not (takes and closes == '1' and not live) then
      refusal = 'closing'
    elseif live and (free == '1' or takes) then
      refusal = 'held'
    end
    if not refusal and after ~= -2 and (after ~= sequence or (after_id ~= '' and string.sub(ids, 1, 16) ~= after_id)) then
      refusal = 'changed'
    end
  end
  if refusal then
    answers[#answers + 1] = refusal .. ' ' .. whole(now) .. (text and ' ' .. text or '')
  elseif not repeated then
    local old = {}
    local expected = leftover and text  -- the thread is there, and will expire
    if leftover then
      for _, member in ipairs(cmsgpack.unpack(leftover)) do old[member] = true end
    end

    -- Apply.
    local new_facts, warning = old_facts, nil
    if takes then
      token = whole(redis.call('INCR', tokens) * buckets + bucket)  -- no other bucket gives the same
      owner, expires, lease_id = taker, now + tonumber(ttl), write_id
      if closes == '1' then closing = '1' end
    elseif kind == '2' then
      expires = now + tonumber(ttl)
    elseif kind == '3' then
      token, owner, expires, lease_id, closing = '0', '', 0, '', '0'
    end
    if outside == '1' then external = '1' end
    local stays = true
    if erase == '1' then
      stays = takes
      sequence, base, ids, new_facts = -1, -1, '', false
    elseif has_row then
      sequence = sequence + 1
      if complete == '1' then base = sequence end
      ids = string.sub(write_id .. ids, 1, 128)
      new_facts = ARGV[row]
    elseif sequence < 0 and token == '0' then
      stays = false
    end
    if not leftover and text and (erase == '1' or has_row or not stays) then
      list_facts(old, thread, tonumber(string.match(text, '^%-?%d+')), old_facts)
    elseif not leftover and text then
      old_facts = nil  -- stay as they are: only the lease's place in the index may change
    end
    if not leftover and text then
      local before, ends = string.match(text, '^%-?%d+ %-?%d+ (%d+) (%d+)')
      list_lease(old, thread, before, tonumber(ends))
    end

    local new, expires_at = {}, nil
    if stays then
      if has_row then
        local state = cjson.decode(new_facts)[1]
        if finished_ttl > 0 and external == '0' and (state == 'completed' or state == 'ended') then
          expires_at = (math.floor(now / 1000) + finished_ttl) * 1000
        elseif expected then
          redis.call('PERSIST', key)
        end
      end
      if erase == '1' and text then redis.call('UNLINK', key) end
      local head = table.concat({whole(sequence), whole(base), token, whole(expires), external, closing, lease_id, ids, owner}, ' ')
      if has_row then
        local record = whole(base) .. ' ' .. ARGV[row + 1] .. ' ' .. write_id .. ' ' .. ARGV[row + 2]
        local name = whole(sequence)
        redis.call('HSET', key, 'head', head, 'facts', new_facts, 'r' .. name, record, 's' .. name, ARGV[row + 3])
        for blob = row + 4, row + 2 + 2 * blobs + 1, 2 do redis.call('HSET', key, ARGV[blob], ARGV[blob + 1]) end
      else
        redis.call('HSET', key, 'head', head)
      end
      if leftover or old_facts ~= nil then list_facts(new, thread, sequence, new_facts) end
      list_lease(new, thread, token, expires)
      answers[#answers + 1] = 'committed ' .. whole(sequence) .. ' ' .. token .. ' ' .. whole(expires)
    else
      if text then redis.call('UNLINK', key) end
      answers[#answers + 1] = 'committed -1 0 0'
    end

    -- A thread that will expire is noted with all that the index holds for it, since nothing else is left then.
    if expected and stays and not has_row and erase == '0' then
      expires_at = tonumber(string.match(cmsgpack.unpack(leftover)[1], '^x(%d+)'))
    end
    if expires_at then
      local members = {'x' .. string.format('%017.0f', expires_at) .. thread}
      for member in pairs(new) do members[#members + 1] = member end
      warning = keep_until(key, thread, expires_at, members)
      if warning then
        answers[#answers] = answers[#answers] .. ' ' .. warning
      else
        new[members[1]] = true
      end
    elseif leftover then
      redis.call('HDEL', expiring, thread)
    end
    change_index(old, new)
  end
end
return answers
