-- Integers of any size, for cells whose numbers are not exact as doubles. Not loaded for takes that
-- do not need it.
--
-- A number is a table of limbs of seven decimal digits, lowest first, with a sign. The product of
-- two limbs plus a carry stays below 2^47, and so does the remainder of a division before its last
-- limb.
local function limbs()
  local BASE, WIDTH = 10000000, 7
  local kind = {}

  local function made(negative) return setmetatable({ negative = negative }, kind) end

  local function trimmed(n)
    while #n > 0 and n[#n] == 0 do n[#n] = nil end
    if #n == 0 then n.negative = false end
    return n
  end

  local function read(text)
    local n, first, last = made(false), 1, #text
    if string.byte(text) == 45 then n.negative, first = true, 2 end
    while last >= first do
      local from = math.max(first, last - WIDTH + 1)
      n[#n + 1] = tonumber(string.sub(text, from, last))
      last = from - 1
    end
    return trimmed(n)
  end

  local function of(double) return read(string.format('%.0f', double)) end

  local function as_double(n)
    local value = 0
    for i = #n, 1, -1 do value = value * BASE + n[i] end
    return n.negative and -value or value
  end

  local function compare_sizes(a, b)
    if #a ~= #b then return #a < #b and -1 or 1 end
    for i = #a, 1, -1 do
      if a[i] ~= b[i] then return a[i] < b[i] and -1 or 1 end
    end
    return 0
  end

  local function compare(a, b)
    if a.negative ~= b.negative then return a.negative and -1 or 1 end
    return a.negative and compare_sizes(b, a) or compare_sizes(a, b)
  end

  local function sum_of_sizes(a, b)
    local n, carry = made(false), 0
    for i = 1, math.max(#a, #b) do
      local limb = (a[i] or 0) + (b[i] or 0) + carry
      carry = limb >= BASE and 1 or 0
      n[i] = limb - carry * BASE
    end
    if carry > 0 then n[#n + 1] = carry end
    return n
  end

  -- True if |a| >= |b|.
  local function difference_of_sizes(a, b)
    local n, borrow = made(false), 0
    for i = 1, #a do
      local limb = a[i] - (b[i] or 0) - borrow
      borrow = limb < 0 and 1 or 0
      n[i] = limb + borrow * BASE
    end
    return trimmed(n)
  end

  function kind.__add(a, b)
    local n
    if a.negative == b.negative then
      n = sum_of_sizes(a, b)
      n.negative = a.negative
    elseif compare_sizes(a, b) >= 0 then
      n = difference_of_sizes(a, b)
      n.negative = a.negative
    else
      n = difference_of_sizes(b, a)
      n.negative = b.negative
    end
    return trimmed(n)
  end

  function kind.__unm(a)
    local n = made(not a.negative)
    for i = 1, #a do n[i] = a[i] end
    return trimmed(n)
  end

  function kind.__sub(a, b) return a + -b end
  function kind.__lt(a, b) return compare(a, b) < 0 end
  function kind.__le(a, b) return compare(a, b) <= 0 end

  function kind.__mul(a, b)
    local n = made(a.negative ~= b.negative)
    for i = 1, #a + #b do n[i] = 0 end
    for i = 1, #a do
      local carry = 0
      for j = 1, #b do
        local limb = n[i + j - 1] + a[i] * b[j] + carry
        carry = math.floor(limb / BASE)
        n[i + j - 1] = limb - carry * BASE
      end
      n[i + #b] = n[i + #b] + carry
    end
    return trimmed(n)
  end

  -- Divides absolute values; `b` is not 0. Doubles estimate each limb of the quotient, with an
  -- error of at most one.
  local function quotient_and_rest(a, b)
    local divisor = math.abs(as_double(b))
    local quotient, rest = made(false), made(false)
    for i = #a, 1, -1 do
      table.insert(rest, 1, a[i])
      trimmed(rest)
      local limb = math.min(math.floor(math.abs(as_double(rest)) / divisor), BASE - 1)
      rest = rest - b * of(limb)
      while rest.negative do
        limb, rest = limb - 1, rest + b
      end
      while compare_sizes(rest, b) >= 0 do
        limb, rest = limb + 1, rest - b
      end
      quotient[i] = limb
    end
    return trimmed(quotient), rest
  end

  -- Division that rounds down; `b` is positive.
  function kind.__div(a, b)
    local quotient, rest = quotient_and_rest(a, b)
    if not a.negative then return quotient end
    return -(#rest > 0 and quotient + of(1) or quotient)
  end

  function kind.__tostring(n)
    if #n == 0 then return '0' end
    local parts = { n.negative and '-' or '', string.format('%d', n[#n]) }
    for i = #n - 1, 1, -1 do parts[#parts + 1] = string.format('%07d', n[i]) end
    return table.concat(parts)
  end

  return { read = read, of = of, as_double = as_double }
end

