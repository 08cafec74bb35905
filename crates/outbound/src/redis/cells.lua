-- Cells of every kind, for all operations. The numbers of a bucket are doubles as long as all
-- results stay below 2^52, so that nothing is ever rounded; otherwise they are numbers of limbs(),
-- and the same code handles both.
--
-- A time is a pair of seconds and nanoseconds, because a double cannot hold both.
--
-- A server's clock that was ahead has left times in the future. With a margin above 0, a cell that is
-- further ahead than that number of seconds restarts now: its spent and refilled amounts stay, and nothing is
-- locked until the clock catches up. Such a cell `is_moved`, and is always stored: otherwise it
-- would restart each time. Below the margin, time stands still until the clock has caught up, so that a
-- small step back adds no credit.
local function cells(now_s, now_n, save, margin_s)
  local floor, match, format = math.floor, string.match, string.format
  local EXACT = 4503599627370496
  local BILLION = 1000000000
  local big, dates

  local function same(value) return value end

  local function least(a, b)
    if b < a then return b end
    return a
  end

  local function most(a, b)
    if a < b then return b end
    return a
  end

  -- Division that rounds down.
  local function down(a, b)
    local quotient = a / b
    if type(quotient) == 'number' then return floor(quotient) end
    return quotient
  end

  local function up(a, b) return -down(-a, b) end

  local function double(n)
    if type(n) == 'number' then return n end
    return big.as_double(n)
  end

  -- Splits nanoseconds into seconds and the rest.
  local function parts(cell, ns)
    local s = down(ns, cell.of(BILLION))
    return double(s), double(ns - s * cell.of(BILLION))
  end

  -- Buckets.

  local function leased(cell) return cell.of(cell.new + cell.old) * cell.period end

  local function since(cell, s, n)
    return cell.of(s - cell.at_s) * cell.of(BILLION) + cell.of(n - cell.at_n)
  end

  -- Maximum credit. Leased credit that nodes may still spend counts as present and is not refilled.
  local function room(cell)
    if cell.new + cell.old == 0 then return most(cell.full, cell.credit) end
    return most(cell.full - leased(cell), cell.credit)
  end

  local function accrue_until(cell, s, n)
    local elapsed = since(cell, s, n)
    if cell.of(0) < elapsed then
      cell.credit = least(cell.credit + elapsed * cell.amount, room(cell))
      cell.at_s, cell.at_n = s, n
    end
  end

  -- Refills the bucket up to now, or not at all if the clock stepped back. Credit leased in a
  -- second counts as spent after the end of the next second; until then it is not refilled.
  local function accrue(cell)
    while cell.leased_s < now_s and cell.new + cell.old > 0 do
      cell.leased_s = cell.leased_s + 1
      accrue_until(cell, cell.leased_s, 0)
      cell.new, cell.old = 0, cell.new
    end
    cell.leased_s = math.max(cell.leased_s, now_s)
    accrue_until(cell, now_s, now_n)
  end

  local function numbers(cell, words)
    local capacity, amount, period = match(words, '^(%d+) (%d+) (%d+)$')
    cell.words, cell.is_refilled = words, amount ~= '0'
    cell.capacity, cell.amount, cell.period = cell.read(capacity), cell.read(amount), cell.read(period)
    cell.full = cell.capacity * cell.period
  end

  -- Changes the settings. Used credit stays used, rounded up if the period changes; a higher
  -- capacity takes effect at once.
  local function reconfigure(cell, words)
    local used, period = cell.full - cell.credit, cell.period
    numbers(cell, words)
    cell.credit = least(cell.full - up(used * cell.period, period), cell.full)
  end

  local function is_ahead(s) return margin_s > 0 and s - now_s > margin_s end

  local function is_exact(cell, words, credit, count)
    local capacity, amount, period = match(words, '^(%d+) (%d+) (%d+)$')
    local most = math.max(tonumber(capacity), math.abs(count), cell.new + cell.old) * period
    most = math.max(most, tonumber(amount), math.abs(credit))
    return math.max(most, math.abs(now_s - cell.at_s) * BILLION) < EXACT
  end

  local function bucket(key, words, count)
    local cell = { kind = 'b', leased_s = now_s, new = 0, old = 0, at_s = now_s, at_n = now_n }
    local credit, at_s, at_n, stored, rest =
      match(redis.call('GET', key) or '', '^b (%S+) (%d+) (%d+) (%d+ %d+ %d+)(.*)$')
    if credit then
      cell.is_stored = true
      cell.at_s, cell.at_n = tonumber(at_s), tonumber(at_n)
      cell.touched_s, cell.touched_n = cell.at_s, cell.at_n
      local leased_s, new, old = match(rest, '^ (%d+) (%d+) (%d+)$')
      if leased_s then
        cell.leased_s, cell.new, cell.old = tonumber(leased_s), tonumber(new), tonumber(old)
      end
      if is_ahead(cell.at_s) then
        cell.at_s, cell.at_n = now_s, now_n
        cell.touched_s, cell.touched_n = now_s, now_n
        cell.is_moved = true
      end
      if is_ahead(cell.leased_s) then cell.leased_s, cell.is_moved = now_s, true end
    end
    local is_other = credit and stored ~= words
    if not is_other and is_exact(cell, words, credit or 0, count) then
      cell.of, cell.read = same, tonumber
    else
      big = big or limbs()
      cell.of, cell.read = big.of, big.read
    end
    cell.debt_max = cell.read('1329227995784915872903807060280344576') -- 2^120
    numbers(cell, credit and stored or words)
    cell.credit = credit and cell.read(credit) or cell.full
    accrue(cell)
    if is_other then reconfigure(cell, words) end
    cell.count = cell.read(count)
    return cell
  end

  -- Returns the time until `missing` credit is refilled; nil for never.
  local function lasting(cell, missing)
    local ns = most(-since(cell, now_s, now_n), cell.of(0))
    if cell.of(0) < missing then
      if not cell.is_refilled then return nil end
      ns = ns + up(missing, cell.amount)
    end
    local s, n = parts(cell, ns)
    -- Times end at 2^64 nanoseconds.
    local last_s, last_n = now_s + s, now_n + n
    if last_n >= BILLION then last_s, last_n = last_s + 1, last_n - BILLION end
    if last_s > 18446744073 or (last_s == 18446744073 and last_n > 709551615) then return nil end
    return s, n
  end

  -- Budgets and slots, whose numbers are exact as doubles. The mark of a budget has the number of
  -- its period in the low 32 bits, and the number of resets above.

  local RESET = 4294967296

  local function budget(key, words, count)
    dates = dates or calendar()
    local amount, every, offset_s, next_s = match(words, '^(%d+) (%S+) (%S+) ?(%S*)$')
    local cell = { kind = 'u', of = same, capacity = tonumber(amount), every = every,
      offset_s = tonumber(offset_s), next_offset_s = tonumber(next_s) or tonumber(offset_s), count = tonumber(count), spent = 0 }
    cell.mark = dates.stretch_of(every, math.max(now_s + cell.offset_s, 0))
    local spent, mark, of = match(redis.call('GET', key) or '', '^u (%S+) (%S+) (%S+)$')
    cell.is_stored = spent
    if not spent then return cell end
    mark = tonumber(mark)
    if of ~= every then
      cell.spent, cell.mark = math.max(tonumber(spent), 0), mark - mark % RESET + cell.mark
    elseif cell.mark <= mark % RESET then
      local begin_s = dates.begin_s(every, mark % RESET, cell.offset_s)
      cell.spent = tonumber(spent)
      if cell.mark < mark % RESET and begin_s and is_ahead(begin_s) then
        -- As behind a reset: what was taken before is not given back to this stretch.
        cell.mark = (mark - mark % RESET + RESET) % (2 * EXACT) + cell.mark
        cell.is_moved = true
      else
        cell.mark = mark
      end
    end
    return cell
  end

  -- Returns the time until the next period begins; nil for never.
  local function until_next(cell)
    local begin_s = dates.begin_s(cell.every, cell.mark % RESET + 1, cell.next_offset_s)
    if not begin_s then return nil end
    if begin_s <= now_s then return 0, 0 end
    if now_n == 0 then return begin_s - now_s, 0 end
    return begin_s - now_s - 1, BILLION - now_n
  end

  local function slots(key, words, count)
    local capacity, lasting_s = match(words, '^(%d+) (%d+)$')
    local cell = { kind = 's', of = same, capacity = tonumber(capacity), count = tonumber(count),
      used = 0, free = {} }
    -- Expiry times are rounded up, so that there are at most 33 different ones per duration.
    local _, exponent = math.frexp(tonumber(lasting_s))
    local step = math.max(1, math.ldexp(1, exponent - 5))
    cell.mark = math.ceil((now_s + lasting_s) / step) * step
    local stored = redis.call('GET', key)
    if stored then
      for second, held in string.gmatch(stored, '(%d+) (%d+)') do
        if tonumber(second) > now_s then
          cell.free[#cell.free + 1] = { tonumber(second), tonumber(held) }
          cell.used = cell.used + held
        end
      end
    end
    return cell
  end

  local function slots_debit(cell, count)
    for _, free in ipairs(cell.free) do
      if free[1] == cell.mark then
        count = math.max(count, -free[2])
        free[2], cell.used = free[2] + count, cell.used + count
        return
      end
    end
    if count > 0 then
      cell.free[#cell.free + 1] = { cell.mark, count }
      cell.used = cell.used + count
    end
  end

  -- Cells.

  local function have(cell)
    if cell.kind == 'b' then return down(cell.credit, cell.period) end
    return cell.capacity - (cell.spent or cell.used)
  end

  -- Returns when the cell can admit its count: a rank (0 at a known time, 1 with the next period, 2
  -- when slots are returned, 3 never), then seconds and nanoseconds.
  local function ready(cell)
    local count = cell.count
    if cell.capacity < count then return 3 end
    if cell.kind == 's' then return 2 end
    local s, n
    if cell.kind == 'u' then
      s, n = until_next(cell)
      return s and 1 or 3, s, n
    end
    s, n = lasting(cell, count * cell.period - cell.credit)
    return s and 0 or 3, s, n
  end

  -- Returns the seconds and nanoseconds until the cell equals a new one; nil if unknown or never.
  local function whole(cell)
    if cell.kind == 'u' then return until_next(cell) end
    if cell.kind == 's' then
      if cell.used == 0 then return 0, 0 end
      return nil
    end
    return lasting(cell, cell.full - cell.credit)
  end

  local function debit(cell, count)
    if cell.kind == 'b' then
      local room = room(cell)
      cell.credit = most(least(cell.credit - count * cell.period, room), -cell.debt_max)
    elseif cell.kind == 'u' then
      cell.spent = math.min(math.max(cell.spent + count, math.min(cell.spent, 0)), EXACT)
    else
      slots_debit(cell, count)
    end
  end

  local function grant(cell)
    if cell.kind == 'b' then
      cell.credit = least(cell.credit + cell.count * cell.period, cell.debt_max)
    elseif cell.kind == 'u' then
      cell.spent = math.max(cell.spent - cell.count, -EXACT)
    end
  end

  local function reset(cell)
    if cell.kind == 'b' then
      cell.credit = cell.full - leased(cell)
    elseif cell.kind == 'u' then
      cell.spent, cell.mark = 0, (cell.mark + RESET) % (2 * EXACT)
    end
  end

  local function store(key, cell, s, n)
    local value
    if cell.kind == 'b' then
      local credit = cell.credit
      value = format('b %s %d %d %s',
        type(credit) == 'number' and format('%d', credit) or tostring(credit),
        cell.at_s, cell.at_n, cell.words)
      if cell.new + cell.old > 0 then
        value = value .. format(' %d %d %d', cell.leased_s, cell.new, cell.old)
      end
      if cell.full < credit then s = nil end
    elseif cell.kind == 'u' then
      value = format('u %d %d %s', cell.spent, cell.mark, cell.every)
    else
      local words, last_s = { 's' }, now_s
      for _, free in ipairs(cell.free) do
        if free[2] > 0 then
          words[#words + 1] = format('%d %d', free[1], free[2])
          last_s = math.max(last_s, free[1])
        end
      end
      value, s, n = table.concat(words, ' '), last_s - now_s, 0
    end
    save(key, value, s, n)
  end

  -- Leases credit to one node: at most a quarter of an equal share, at least one unit if available.
  local function lease(cell, want, nodes, mark, spent, unspent)
    local current = cell.mark or cell.leased_s
    if cell.kind == 'u' then
      if mark == current then debit(cell, -unspent) end
    elseif mark then
      local name = mark == current and 'new' or mark == current - 1 and 'old'
      if name and spent + unspent <= cell[name] then
        cell[name] = cell[name] - spent - unspent
        debit(cell, cell.of(-unspent))
      end
    end
    local left, granted, lasts = double(have(cell)), 0, BILLION
    if left > 0 and want > 0 then
      granted = math.min(want, math.max(floor(left / (4 * nodes)), 1), left)
    end
    debit(cell, cell.of(granted))
    if cell.kind == 'b' then
      cell.new = cell.new + granted
    else
      local s, n = until_next(cell)
      if s == 0 then lasts = n end
    end
    cell.count = cell.of(1)
    return granted, current, lasts
  end

  -- Applies an operation other than look. Returns whether the cell changed.
  local function change(cell, verb, mark)
    if verb == 'reset' then
      reset(cell)
    elseif verb == 'grant' then
      grant(cell)
    elseif cell.kind == 'b' or not (cell.count < 0) then
      debit(cell, cell.count)
    elseif cell.kind == 'u' then
      -- Credit taken in an ended period, or before a reset, is not returned.
      if mark ~= cell.mark then return false end
      debit(cell, cell.count)
    elseif mark then
      cell.mark = mark
      debit(cell, cell.count)
    end
    return true
  end

  local kinds = { b = bucket, u = budget, s = slots }
  return {
    load = function(kind, key, words, count) return kinds[kind](key, words, count) end,
    have = have, ready = ready, whole = whole, change = change, lease = lease, store = store,
  }
end

