-- Applies an operation to quota cells that several nodes share: to all of them, or to none.
--
-- KEYS  the cells, all in one hash slot
-- ARGV  time in nanoseconds, or empty for the server's time; the operation: take, force, look,
--       reset, grant or lease; then for each cell: kind, its settings, count, 1 if it denies, mark
--         b capacity amount period_ns | u amount every offset_s | s capacity lasting_s
--       A lease is for one cell. Its count is the requested amount, its mark that of the previous
--       lease, if there is one; then: number of nodes, spent and unspent of the previous lease.
-- Reply position of the denying cell (from 1) or 0, nanoseconds until it would admit; for each cell:
--       credit left, 1 if it had too little, mark, nanoseconds until it is full again,
--       second and nanosecond of the last take from a bucket
--       For a lease: granted, mark, nanoseconds that it lasts, nanoseconds until there is credit,
--       credit left
--       An empty text stands for none. Numbers are integers, or decimal text if they are large.
--
-- Stored values: a bucket is `b credit second nanosecond capacity amount period_ns`, with leases
-- followed by `second new old`: a second, and the amounts leased in it and in the second before.
-- A budget is `u spent mark every`. Slots are `s` with pairs `second count`: at that second so many
-- slots expire.

local EXACT = 4503599627370496 -- 2^52
local BILLION = 1000000000
local FIELDS = 5
local floor, ceil, match, format, call = math.floor, math.ceil, string.match, string.format, redis.call

local now_text, verb = ARGV[1], ARGV[2]
local is_server_time = now_text == ''
local now_s, now_n
if is_server_time then
  local time = call('TIME')
  now_s, now_n = tonumber(time[1]), time[2] * 1000
else
  now_s = #now_text > 9 and tonumber(string.sub(now_text, 1, -10)) or 0
  now_n = tonumber(string.sub(now_text, -9))
end

-- Formats seconds and nanoseconds as nanoseconds; empty for no time.
local function word(s, n)
  if not s then return '' end
  if s < 4000000 then return s * BILLION + n end
  return format('%d%09d', s, n)
end

-- A key expires when its cell equals a new one, plus this margin for the two seconds of a lease and
-- for a clock that steps back a little.
local MARGIN_S = 3
local MARGIN_MS = 1000 * MARGIN_S

local function save(key, value, s, n)
  if is_server_time and s and s < BILLION then
    call('PSETEX', key, format('%d', ceil(s * 1000 + n / 1000000) + MARGIN_MS), value)
  else
    call('SET', key, value)
  end
end

local others
local function other()
  -- A moment that the caller names may lie before the last one.
  others = others or cells(now_s, now_n, save, is_server_time and MARGIN_S or 0)
  return others
end

-- Loads a bucket in the common case: its numbers are exact as doubles, it has no leases, and its
-- stored settings are equal. Returns nil otherwise.
local function plain(key, words, count)
  local capacity, amount, period = match(words, '^(%d+) (%d+) (%d+)$')
  count = tonumber(count)
  local full, cost = capacity * period, count * period
  amount = tonumber(amount)
  if full >= EXACT or cost >= EXACT or amount >= EXACT or count < 0 then return nil end
  local credit, at_s, at_n, by = full, 0, 0, nil
  local stored = call('GET', key)
  if stored then
    credit, at_s, at_n, by = match(stored, '^b (%S+) (%d+) (%d+) (.+)$')
    if by ~= words then return nil end
    credit, at_s, at_n = tonumber(credit), tonumber(at_s), tonumber(at_n)
    local elapsed = (now_s - at_s) * BILLION + now_n - at_n
    if elapsed < 0 or elapsed >= EXACT or credit > full or credit <= -EXACT then return nil end
    credit = credit + elapsed * amount
    if credit > full then credit = full end
  end
  return { is_plain = true, words = words, full = full, cost = cost, amount = amount, period = period,
    credit = credit, touched_s = at_s, touched_n = at_n, is_short = credit < cost }
end

-- Returns the seconds and nanoseconds until a plain bucket has refilled `missing`; nil for never.
local function lasting(cell, missing)
  if missing <= 0 then return 0, 0 end
  if cell.amount == 0 then return nil end
  local ns = ceil(missing / cell.amount)
  local s = floor(ns / BILLION)
  return s, ns - s * BILLION
end

if verb == 'lease' then
  local kind, words, want, mark = ARGV[3], ARGV[4], ARGV[5], ARGV[7]
  if kind == 's' then return redis.error_reply('TELPHER slots are not leased') end
  local other = other()
  local cell = other.load(kind, KEYS[1], words, want)
  local granted, current, lasts = other.lease(cell, tonumber(want), tonumber(ARGV[8]),
    tonumber(mark), tonumber(ARGV[9]), tonumber(ARGV[10]))
  other.store(KEYS[1], cell, other.whole(cell))
  local rank, s, n
  if granted == 0 then rank, s, n = other.ready(cell) end
  return { granted, current, lasts, word(s, n), tostring(other.have(cell)) }
end

local list, denied, denied_rank, denied_s, denied_n = {}, 0, -1, nil, nil
for i = 1, #KEYS do
  local at = 2 + (i - 1) * FIELDS
  local kind, words, count = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local cell = kind == 'b' and verb ~= 'grant' and verb ~= 'reset' and plain(KEYS[i], words, count)
  if not cell then
    cell = other().load(kind, KEYS[i], words, count)
    cell.is_short = others.have(cell) < cell.count
  end
  cell.is_short = cell.is_short and verb == 'take'
  if cell.is_short and ARGV[at + 4] == '1' then
    local rank, s, n
    if not cell.is_plain then
      rank, s, n = others.ready(cell)
    elseif cell.cost <= cell.full then
      s, n = lasting(cell, cell.cost - cell.credit)
    end
    rank = rank or (s and 0 or 3)
    if rank > denied_rank or (rank == denied_rank and s
        and (s > denied_s or (s == denied_s and n > denied_n))) then
      denied, denied_rank, denied_s, denied_n = i, rank, s, n
    end
  end
  list[i] = cell
end

local reply = { denied, word(denied_s, denied_n) }
for i, cell in ipairs(list) do
  local at = 2 + (i - 1) * FIELDS
  local is_changed = denied == 0 and not cell.is_short and verb ~= 'look' and ARGV[at + 3] ~= '0'
  if verb == 'reset' then is_changed = cell.is_stored end
  local have, s, n
  if cell.is_plain then
    if is_changed then cell.credit = cell.credit - cell.cost end
    have = floor(cell.credit / cell.period)
    s, n = lasting(cell, cell.full - cell.credit)
    if is_changed then
      local value = format('b %d %d %d %s', cell.credit, now_s, now_n, cell.words)
      save(KEYS[i], value, s, n)
    end
  else
    if is_changed then is_changed = others.change(cell, verb, tonumber(ARGV[at + 5])) end
    have = others.have(cell)
    s, n = others.whole(cell)
    if is_changed or cell.is_moved then others.store(KEYS[i], cell, s, n) end
    if type(have) ~= 'number' then have = tostring(have) end
  end
  reply[i + 2] = { have, cell.is_short and 1 or 0, cell.mark or 0, word(s, n),
    cell.touched_s or 0, cell.touched_n or 0 }
end
return reply
