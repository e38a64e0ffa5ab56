---The fence: recalled text goes into a prompt inside it, and is taken out of what the model says.

local M = {}

local function find(text, part, from)
  return text:find(part, from or 1, true)
end

local function check(fence)
  local open, close = fence.open, fence.close
  assert(open ~= "" and close ~= "" and not find(open, close) and not find(close, open), "the marks of the fence cannot be told apart")
end

local function without(text, part)
  return table.concat(vim.split(text, part, { plain = true }))
end

---Recalled text for the user turn, between the session's two marks; "" for no text. Marks inside the text are taken out.
---@param text string
---@param fence memd.Fence
---@return string
function M.fenced(text, fence)
  check(fence)
  while find(text, fence.open) or find(text, fence.close) do -- what is left may join to another
    text = without(without(text, fence.open), fence.close)
  end
  return text == "" and "" or fence.open .. "\n" .. text .. "\n" .. fence.close
end

---Takes a session's blocks out of a stream, in chunks of any size. A block is an opening mark, text without marks, and a closing mark;
---all else is the model's own and comes out as it came in. An opening mark before a backtick is quoted and begins nothing.
---@class memd.Scrubber
local Scrubber = {}
Scrubber.__index = Scrubber

---@param fence memd.Fence
---@return memd.Scrubber
function M.scrubber(fence)
  check(fence)
  return setmetatable({ fence = fence, block = "", tail = "" }, Scrubber)
end

---The part of what has arrived that is surely the model's own and was not given before.
---@param chunk string
---@return string
function Scrubber:feed(chunk)
  local text, own = self.tail .. chunk, {}
  local at, mark = self:next_mark(text)
  while at do
    local before = text:sub(1, at - 1)
    text = text:sub(at + #mark)
    if mark == self.fence.close then
      self.block = ""
    else
      table.insert(own, self.block) -- an opening mark that nothing has closed
      table.insert(own, before)
      self.block = mark
    end
    at, mark = self:next_mark(text)
  end
  local sure = #text - self:uncertain(text)
  if self.block ~= "" then
    self.block = self.block .. text:sub(1, sure)
  else
    table.insert(own, text:sub(1, sure))
  end
  self.tail = text:sub(sure + 1)
  return table.concat(own)
end

---The rest: a block that was never closed is the model's own. Afterwards a new stream begins.
---@return string
function Scrubber:close()
  local rest = self.block .. self.tail
  self.block, self.tail = "", ""
  return rest
end

---The first whole mark that counts here.
function Scrubber:next_mark(text)
  local opening = self:opening(text)
  local closing = self.block ~= "" and find(text, self.fence.close) or nil
  if closing and (not opening or closing < opening) then
    return closing, self.fence.close
  end
  return opening, self.fence.open
end

---An opening mark of which it is known that no backtick follows.
function Scrubber:opening(text)
  local at, last = find(text, self.fence.open)
  while at do
    local after = text:sub(last + 1, last + 1)
    if after == "" then
      return nil
    elseif after ~= "`" then
      return at
    end
    at, last = find(text, self.fence.open, at + 1)
  end
end

---How many bytes at the end may be the beginning of a mark, or an opening mark of which the next character decides.
function Scrubber:uncertain(text)
  local open, close = self.fence.open, self.fence.close
  for length = math.min(#text, math.max(#open, #close)), 1, -1 do
    local tail = text:sub(-length)
    if open:sub(1, length) == tail or (self.block ~= "" and close:sub(1, length) == tail) then
      return length
    end
  end
  return 0
end

return M
