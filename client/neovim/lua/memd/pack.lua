---Values as MessagePack.
---
---The editor has an encoder of its own, and up to 0.9 it writes -129, -32769 and -2147483649 as other numbers (found by the
---daemon's certification); the editor's decoder is fine, and used.

local floor, char = math.floor, string.char

local function big_endian(value, bytes)
  local parts = {}
  for at = bytes, 1, -1 do
    parts[at] = char(value % 256)
    value = floor(value / 256)
  end
  return table.concat(parts)
end

---The head of something with a length: the short form, then those with 8, 16 and 32 bits; no 8 if it has none.
local function head(length, short, most, marks)
  if length <= most then
    return char(short + length)
  end
  for _, mark in ipairs(marks) do
    if length < 256 ^ mark[2] then
      return char(mark[1]) .. big_endian(length, mark[2])
    end
  end
  error("too long for MessagePack")
end

local STR = { { 0xd9, 1 }, { 0xda, 2 }, { 0xdb, 4 } }
local ARRAY = { { 0xdc, 2 }, { 0xdd, 4 } }
local MAP = { { 0xde, 2 }, { 0xdf, 4 } }
local UINT = { { 0xcc, 1 }, { 0xcd, 2 }, { 0xce, 4 }, { 0xcf, 8 } }
local INT = { { 0xd0, 1 }, { 0xd1, 2 }, { 0xd2, 4 }, { 0xd3, 8 } }

local function integer(value)
  if value >= 0 then
    return head(value, 0, 127, UINT)
  end
  if value >= -32 then
    return char(256 + value)
  end
  for _, mark in ipairs(INT) do
    if value >= -(256 ^ mark[2]) / 2 then
      if mark[2] == 8 then -- 2^64 has more digits than a number here: both halves by themselves
        local high = floor(value / 4294967296)
        return char(0xd3) .. big_endian(high % 4294967296, 4) .. big_endian(value % 4294967296, 4)
      end
      return char(mark[1]) .. big_endian(value % 256 ^ mark[2], mark[2])
    end
  end
end

local pack

local function map(value)
  local parts, count = {}, 0
  for key, item in pairs(value) do
    count = count + 1
    parts[count] = pack(tostring(key)) .. pack(item)
  end
  return head(count, 0x80, 15, MAP) .. table.concat(parts)
end

local function array(value)
  local parts = {}
  for at, item in ipairs(value) do
    parts[at] = pack(item)
  end
  return head(#parts, 0x90, 15, ARRAY) .. table.concat(parts)
end

---The bytes of a value: nil, NIL, booleans, ints up to 2^53, texts, lists and maps. An empty table is a list unless it is vim.empty_dict().
---@return string
function pack(value)
  local kind = type(value)
  if value == nil or value == vim.NIL then
    return "\192"
  elseif kind == "boolean" then
    return value and "\195" or "\194"
  elseif kind == "string" then
    return head(#value, 0xa0, 31, STR) .. value
  elseif kind == "number" then
    assert(floor(value) == value and value ^ 2 < 2 ^ 107, "an int expected, got " .. value)
    return integer(value)
  end
  assert(kind == "table", "cannot be sent: a " .. kind)
  if next(value) == nil then
    return getmetatable(value) == vim._empty_dict_mt and "\128" or "\144"
  end
  return (vim.tbl_islist or vim.islist)(value) and array(value) or map(value)
end

return pack
