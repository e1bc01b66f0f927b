-- The operations on one view. Redis runs each call of this script as one step; ARGV[1] names the operation.
--
-- A table is a hash of values by key, with a sorted set of its keys beside it. Readers see these tables together:
--
--   live:SPAN     the live values of a span; each begins with the 19 digits of its version
--   ID:SPAN       a piece: values that were staged, then published, and not merged into live:SPAN yet
--   batch:BATCH   the values of a batch
--
-- Publishing a piece is an entry in a list, whatever its size. It is merged afterwards in small steps, which change no
-- answer: a reader looks into the published pieces as well, in their order. In the same way a batch takes its pieces
-- before it is shown. A piece that was never committed expires, since its writer died.
--
-- Numbers are decimals of equal length, so that their order is that of texts; a double of Lua cannot hold a version.
--
--   staged    sorted set of pieces, each WRITER:VERSION:CALL:ID:SPAN
--   shown     list of the published pieces that are not merged, in the order of their publication
--   spans     sorted set of the spans that have a table
--   times     hash of the last publication by writer
--   visible   the visible BATCH, which is UNTIL:RUN
--   batches   sorted set of batches that are not visible; with queue:BATCH, a list of pieces, and parts:BATCH
--   removed   set of the batches that were removed, with the end of the visible one

local call = redis.call
local CHUNK = 1000 -- `unpack` has a limit of some thousands

local function key(name) return KEYS[1] .. ':' .. name end
local function values_of(name) return key('values:' .. name) end
local function keys_of(name) return key('keys:' .. name) end
local function unlink(name) call('UNLINK', values_of(name), keys_of(name)) end

local STAGED, SHOWN, SPANS, TIMES = key('staged'), key('shown'), key('spans'), key('times')
local VISIBLE, BATCHES, REMOVED = key('visible'), key('batches'), key('removed')

local function version_of(piece) return piece:sub(21, 39) end
local function table_of(piece) return piece:sub(61) end
local function span_of(piece) return piece:sub(-20) end
local function end_of(batch) return batch:sub(1, 20) end
local function is_newer(value, present) return not present or value:sub(1, 19) >= present:sub(1, 19) end

local visible = call('GET', VISIBLE)
local function is_visible(span) return not visible or span >= end_of(visible) end

-- Move values from one table to another, at most `count` and not many more than `bytes`; return how many and how large.
local function move(source, target, count, bytes, newer_alone)
  local from, to = values_of(source), values_of(target)
  local names, taken, size = call('ZRANGE', keys_of(source), 0, math.min(count, CHUNK) - 1), {}, 0
  while #taken < #names and size < bytes do
    local name = names[#taken + 1]
    taken[#taken + 1] = name
    size = size + call('HSTRLEN', from, name) + (newer_alone and call('HSTRLEN', to, name) or 0)
  end
  if #taken == 0 then return 0, 0 end
  local values = call('HMGET', from, unpack(taken))
  local present = newer_alone and call('HMGET', to, unpack(taken)) or {}
  local fields, members = {}, {}
  for at, name in ipairs(taken) do
    if not newer_alone or is_newer(values[at], present[at]) then
      fields[#fields + 1], fields[#fields + 2] = name, values[at]
      members[#members + 1], members[#members + 2] = 0, name
    end
  end
  if #fields > 0 then
    call('HSET', to, unpack(fields))
    call('ZADD', keys_of(target), unpack(members))
  end
  call('HDEL', from, unpack(taken))
  call('ZREM', keys_of(source), unpack(taken))
  return #taken, size
end

-- Move the pieces of a queue until one limit is reached; return 1 when more are left.
local function merge(queue, count, bytes, target_of, newer_alone)
  while count > 0 and bytes > 0 do
    local piece = call('LINDEX', queue, 0)
    if not piece then return 0 end
    local name, target = target_of(piece)
    local moved, size = 1, 0
    if target then moved, size = move(name, target, count, bytes, newer_alone) else unlink(name) end
    if call('EXISTS', keys_of(name)) == 0 then call('LPOP', queue) end
    count, bytes = count - math.max(moved, 1), bytes - size
  end
  return call('EXISTS', queue)
end

local function look_up(name, first)
  local found = {}
  for from = first, #ARGV, CHUNK do
    for _, value in ipairs(call('HMGET', values_of(name), unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))) do
      found[#found + 1] = value
    end
  end
  return found
end

-- Make the pieces of a call permanent: ARGV from `first` on has their names and sizes. False when one has expired.
local function keep(first)
  for at = first, #ARGV, 2 do
    if call('HLEN', values_of(ARGV[at])) ~= tonumber(ARGV[at + 1]) then return false end
  end
  for at = first, #ARGV, 2 do
    call('PERSIST', values_of(ARGV[at]))
    call('PERSIST', keys_of(ARGV[at]))
  end
  return true
end

-- Freeing commands come first here and below: a full server then runs the whole script instead of refusing it.
local function show(pieces)
  for _, piece in ipairs(pieces) do
    call('ZREM', STAGED, piece)
    call('RPUSH', SHOWN, piece)
  end
end

local function forget(batch)
  call('ZREM', BATCHES, batch)
  for _, piece in ipairs(call('LRANGE', key('queue:' .. batch), 0, -1)) do unlink(piece) end
  call('UNLINK', key('queue:' .. batch), key('parts:' .. batch))
  unlink('batch:' .. batch)
end

-- Why a batch takes no values any more; nil while it does.
local function closed(batch)
  if visible and end_of(visible) > end_of(batch) then return {'later', end_of(visible)} end
  if visible == batch then return {'visible'} end
  if call('SISMEMBER', REMOVED, batch) == 1 then return {'removed'} end
end

-- Show a batch that has all of its pieces, and remove what it covers.
local function switch(batch)
  local others = call('ZRANGEBYLEX', BATCHES, '-', '(' .. end_of(batch) .. ';')
  local same = {}
  if visible then
    unlink('batch:' .. visible)
    if end_of(visible) == end_of(batch) then same[1] = visible else call('DEL', REMOVED) end
  end
  call('ZREM', BATCHES, batch)
  call('UNLINK', key('parts:' .. batch))
  for _, other in ipairs(others) do
    if other ~= batch then
      forget(other)
      if end_of(other) == end_of(batch) then same[#same + 1] = other end
    end
  end
  for _, span in ipairs(call('ZRANGEBYLEX', SPANS, '-', '(' .. end_of(batch))) do
    unlink('live:' .. span)
    call('ZREM', SPANS, span)
  end
  for _, other in ipairs(same) do call('SADD', REMOVED, other) end
  call('SET', VISIBLE, batch)
end

local operations = {}

-- ARGV: a piece, the seconds after which it expires, keys and values.
function operations.put()
  local name, members = ARGV[2], {}
  for at = 4, #ARGV, 2 do members[#members + 1], members[#members + 2] = 0, ARGV[at] end
  call('HSET', values_of(name), unpack(ARGV, 4))
  call('ZADD', keys_of(name), unpack(members))
  call('EXPIRE', values_of(name), ARGV[3])
  call('EXPIRE', keys_of(name), ARGV[3])
end

-- ARGV: writer, version, pieces with their sizes.
function operations.stage()
  if not keep(4) then return 'expired' end
  local number = string.format('%019.0f', call('INCR', key('calls')))
  for at = 4, #ARGV, 2 do
    call('ZADD', STAGED, 0, table.concat({ARGV[2], ARGV[3], number, ARGV[at]}, ':'))
  end
  return 'staged'
end

-- ARGV: writer, version, time.
function operations.publish()
  local writer, at = ARGV[2], ARGV[4]
  show(call('ZRANGEBYLEX', STAGED, '[' .. writer .. ':', '(' .. writer .. ':' .. ARGV[3] .. ';'))
  local former = call('HGET', TIMES, writer)
  if not former or former < at then call('HSET', TIMES, writer, at) end
end

-- ARGV: how many values, and how many bytes at once.
function operations.merge()
  local function target_of(piece)
    local span = span_of(piece)
    if not is_visible(span) then return table_of(piece) end
    call('ZADD', SPANS, 0, span)
    return table_of(piece), 'live:' .. span
  end
  return merge(SHOWN, tonumber(ARGV[2]), tonumber(ARGV[3]), target_of, true)
end

-- ARGV: writer, version.
function operations.discard()
  local writer = ARGV[2]
  for _, piece in ipairs(call('ZRANGEBYLEX', STAGED, '[' .. writer .. ':' .. ARGV[3] .. ';', '(' .. writer .. ';')) do
    unlink(table_of(piece))
    call('ZREM', STAGED, piece)
  end
end

-- ARGV: the first writer, version.
function operations.retire()
  local first, pieces = ARGV[2], {}
  for _, piece in ipairs(call('ZRANGEBYLEX', STAGED, '[' .. first .. ':', '+')) do
    if version_of(piece) <= ARGV[3] then
      pieces[#pieces + 1] = piece
    else
      unlink(table_of(piece))
      call('ZREM', STAGED, piece)
    end
  end
  table.sort(pieces, function(one, other)
    if version_of(one) ~= version_of(other) then return version_of(one) < version_of(other) end
    return one < other
  end)
  show(pieces)
  for _, writer in ipairs(call('HKEYS', TIMES)) do
    if writer >= first then call('HDEL', TIMES, writer) end
  end
end

-- ARGV: a batch.
function operations.state()
  return closed(ARGV[2]) or {'open'}
end

-- ARGV: a batch, pieces with their sizes.
function operations.stage_batch()
  local batch = ARGV[2]
  local why = closed(batch)
  if why then return why end
  if not keep(3) then return {'expired'} end
  call('ZADD', BATCHES, 0, batch)
  for at = 3, #ARGV, 2 do call('RPUSH', key('queue:' .. batch), ARGV[at]) end
  return {'staged'}
end

-- ARGV: how many values, how many bytes, a batch.
function operations.merge_batch()
  local batch = ARGV[4]
  local function target_of(piece) return piece, 'batch:' .. batch end
  return merge(key('queue:' .. batch), tonumber(ARGV[2]), tonumber(ARGV[3]), target_of, false)
end

-- ARGV: a batch, the part, how many parts.
function operations.publish_batch()
  local batch = ARGV[2]
  local why = closed(batch)
  if why then return why end
  call('ZADD', BATCHES, 0, batch)
  call('SADD', key('parts:' .. batch), ARGV[3])
  if call('SCARD', key('parts:' .. batch)) < tonumber(ARGV[4]) then return {'noted'} end
  if call('EXISTS', key('queue:' .. batch)) == 1 then return {'unmerged'} end
  switch(batch)
  return {'shown'}
end

-- The tables with live values that readers see: the spans in their order, and the published pieces of each.
local function live_tables()
  local spans = call('ZRANGEBYLEX', SPANS, visible and '[' .. end_of(visible) or '-', '+')
  local pieces = {}
  for _, span in ipairs(spans) do pieces[span] = {} end
  for _, piece in ipairs(call('LRANGE', SHOWN, 0, -1)) do
    local span = span_of(piece)
    if is_visible(span) then
      if not pieces[span] then
        pieces[span] = {}
        spans[#spans + 1] = span
      end
      table.insert(pieces[span], table_of(piece))
    end
  end
  table.sort(spans)
  return spans, pieces
end

-- ARGV: the keys. The answer: the visible batch, the oldest time, the values of the batch, those of each span.
function operations.read()
  local oldest = false
  for _, at in ipairs(call('HVALS', TIMES)) do
    if not oldest or at < oldest then oldest = at end
  end
  local answer = {visible, oldest, visible and look_up('batch:' .. visible, 2) or {}}
  local spans, pieces = live_tables()
  for _, span in ipairs(spans) do
    local found = look_up('live:' .. span, 2)
    for _, name in ipairs(pieces[span]) do
      for at, value in ipairs(look_up(name, 2)) do
        if value and is_newer(value, found[at]) then found[at] = value end
      end
    end
    answer[#answer + 1] = found
  end
  return answer
end

-- ARGV: the key before the first one, how many. The answer: the next keys of each table.
function operations.keys()
  local answer = {}
  local function add(name)
    local after = ARGV[2] == '' and '-' or '(' .. ARGV[2]
    answer[#answer + 1] = call('ZRANGEBYLEX', keys_of(name), after, '+', 'LIMIT', 0, ARGV[3])
  end
  if visible then add('batch:' .. visible) end
  local spans, pieces = live_tables()
  for _, span in ipairs(spans) do
    add('live:' .. span)
    for _, name in ipairs(pieces[span]) do add(name) end
  end
  return answer
end

function operations.drop()
  for _, piece in ipairs(call('ZRANGE', STAGED, 0, -1)) do unlink(table_of(piece)) end
  for _, piece in ipairs(call('LRANGE', SHOWN, 0, -1)) do unlink(table_of(piece)) end
  for _, span in ipairs(call('ZRANGE', SPANS, 0, -1)) do unlink('live:' .. span) end
  for _, batch in ipairs(call('ZRANGE', BATCHES, 0, -1)) do forget(batch) end
  if visible then unlink('batch:' .. visible) end
  call('UNLINK', STAGED, SHOWN, SPANS, TIMES, VISIBLE, BATCHES, REMOVED, key('calls'))
end

return operations[ARGV[1]]()
