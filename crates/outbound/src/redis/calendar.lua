-- Calendar periods of budgets. Dates by Howard Hinnant,
-- "chrono-Compatible Low-Level Date Algorithms".
local function calendar()
  local STRETCH_S = { minute = 60, hour = 3600, day = 86400 }

  local function month_of_day(day)
    local days = day + 719468
    local era = math.floor(days / 146097)
    local doe = days - era * 146097
    local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524)
      - math.floor(doe / 146096)) / 365)
    local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
    local shifted = math.floor((5 * doy + 2) / 153)
    local month = shifted < 10 and shifted + 3 or shifted - 9
    local year = yoe + era * 400 + (month <= 2 and 1 or 0)
    return year * 12 + month - 1
  end

  local function day_of_month(number)
    local year, month = math.floor(number / 12), number % 12 + 1
    if month <= 2 then year = year - 1 end
    local era = math.floor(year / 400)
    local yoe = year - era * 400
    local doy = math.floor((153 * (month > 2 and month - 3 or month + 9) + 2) / 5)
    local doe = yoe * 365 + math.floor(yoe / 4) - math.floor(yoe / 100) + doy
    return era * 146097 + doe - 719468
  end

  -- Returns the number of the period that contains a second.
  local function stretch_of(every, local_s)
    local size = STRETCH_S[every]
    local day = math.floor(local_s / 86400)
    if size then return math.floor(local_s / size) end
    if every == 'week' then return math.floor((day + 3) / 7) end
    if every == 'month' then return month_of_day(day) end
    return 0
  end

  -- Returns the first second of a period; nil for never.
  local function begin_s(every, stretch, offset_s)
    local size, local_s = STRETCH_S[every], nil
    if size then
      local_s = stretch * size
    elseif every == 'week' then
      local_s = (stretch * 7 - 3) * 86400
    elseif every == 'month' then
      local_s = day_of_month(stretch) * 86400
    else
      return nil
    end
    return math.max(local_s - offset_s, 0)
  end

  return { stretch_of = stretch_of, begin_s = begin_s }
end

