---One connection: MessagePack-RPC over a Unix socket, with the editor's own decoder and event loop. No reconnecting here.

local pack = require("memd.pack")

local uv = vim.loop

local REQUEST, REPLY, NOTIFICATION = 0, 1, 2
---How many notifications wait for a reader; memd itself keeps no more than a thousand for one that is slow.
local NOTES = 1000

---@class memd.Error
---@field name string stable; one of the protocol's, or not_running, untrusted, connection_lost, timeout
---@field message string for people
---@field code integer
---@field retryable boolean
---@field data table what is needed to act; of a mutation, outcome is "none" or "unknown"
---@field sent boolean? whether the daemon may have seen the request

---@class memd.Wire
local Wire = {}
Wire.__index = Wire

local M = {}

---An error of the connection.
---@return memd.Error
function M.trouble(name, message, sent)
  return { name = name, message = message, code = 0, retryable = not sent, data = {}, sent = sent }
end

---The error of a reply, in the map form or the pair form.
---@return memd.Error
function M.from_wire(value)
  if type(value) == "table" and value.name then
    local data = type(value.data) == "table" and value.data or {}
    return { name = value.name, message = value.message, code = value.code, retryable = value.retryable == true, data = data }
  end
  local pair = type(value) == "table" and value or { 0, tostring(value) }
  return { name = "", message = tostring(pair[2]), code = pair[1] or 0, retryable = false, data = {} }
end

---Nil instead of the editor's own NIL, everywhere.
local function plain(value)
  if value == vim.NIL then
    return nil
  end
  if type(value) == "table" then
    for key, item in pairs(value) do
      if item == vim.NIL then
        value[key] = nil
      elseif type(item) == "table" then
        plain(item)
      end
    end
  end
  return value
end

---@param pipe userdata? a connected pipe; tests give none
function M.new(pipe, path)
  local self = setmetatable({}, Wire)
  self.pipe, self.path = pipe, path
  self.unpack = vim.mpack.Unpacker()
  self.waiting, self.notes, self.last = {}, {}, 0
  self.lost = nil ---@type memd.Error?
  return self
end

---Connect within so many milliseconds; a wire, or nil and the error.
---@return memd.Wire?, memd.Error?
function M.dial(path, timeout_ms)
  local pipe, outcome = uv.new_pipe(false), nil
  pipe:connect(path, function(problem)
    outcome = problem or true
  end)
  vim.wait(timeout_ms, function()
    return outcome ~= nil
  end, 2)
  if outcome ~= true then
    pipe:close()
    if outcome == nil then
      return nil, M.trouble("timeout", path .. ": not accepted in time", false)
    end
    return nil, M.trouble("not_running", "no memd listens at " .. path .. " (" .. outcome .. ")", false)
  end
  local self = M.new(pipe, path)
  pipe:read_start(function(problem, data)
    if data then
      self:feed(data)
    else
      self:lose(M.trouble("connection_lost", path .. ": " .. (problem or "memd closed the connection"), true))
    end
  end)
  return self
end

---Take bytes, cut anywhere.
function Wire:feed(data)
  local at = 1
  while at <= #data and not self.lost do
    local ok, message, next_at = pcall(self.unpack, data, at)
    if not ok then
      return self:lose(M.trouble("connection_lost", self.path .. ": " .. message, true))
    end
    at = next_at
    if message ~= nil then
      self:take(message)
    end
  end
end

---A whole message. What is of no kind that this client knows is passed over.
function Wire:take(message)
  if type(message) ~= "table" then
    return
  end
  if message[1] == REPLY then
    local done = self.waiting[message[2]]
    self.waiting[message[2]] = nil
    if done and message[3] ~= vim.NIL then
      done(M.from_wire(plain(message[3])))
    elseif done then
      done(nil, plain(message[4]))
    end
  elseif message[1] == NOTIFICATION then
    self:note(message[2], plain(message[3]) or {})
  end
end

function Wire:note(method, params)
  if method == "rpc.protocol_error" then
    local problem = M.from_wire(params[1])
    if problem.name == "too_many_requests" then -- refused as a whole: nothing was taken
      self:lose(problem)
    end
  elseif self.on_note then
    self.on_note(method, params)
  elseif #self.notes < NOTES then
    table.insert(self.notes, { method, params })
  end
end

---Send a request; done(error, result) is called once, perhaps on the event loop. The msgid.
---@return integer
function Wire:request(method, params, done)
  self.last = self.last % 4294967295 + 1
  local msgid = self.last
  if self.lost then
    done(M.trouble(self.lost.name, self.lost.message, false))
    return msgid
  end
  self.waiting[msgid] = done
  self:send({ REQUEST, msgid, method, { next(params) and params or vim.empty_dict() } })
  return msgid
end

---Send a request and wait for its reply; the result, or nil and the error.
function Wire:call(method, params, timeout_ms)
  local answer
  local msgid = self:request(method, params, function(problem, result)
    answer = { problem, result }
  end)
  vim.wait(math.max(1, timeout_ms), function()
    return answer ~= nil
  end, 1)
  if not answer then
    self.waiting[msgid] = nil
    self:send({ NOTIFICATION, "rpc.cancel", { { msgid = msgid } } }) -- nobody waits any more
    return nil, M.trouble("timeout", "no reply to " .. method .. " in time", true)
  end
  return answer[2], answer[1]
end

function Wire:send(message)
  self.pipe:write(pack(message), function(problem)
    if problem then -- a message that was cut is never carried out
      self:lose(M.trouble("connection_lost", self.path .. ": " .. problem, true))
    end
  end)
end

---It is over, for everybody who waits. The first reason stays.
function Wire:lose(reason)
  if self.lost then
    return
  end
  self.lost = reason
  if self.pipe and not self.pipe:is_closing() then
    self.pipe:close()
  end
  local waiting = self.waiting
  self.waiting = {}
  for _, done in pairs(waiting) do
    done(reason)
  end
  if self.on_lost then
    self.on_lost()
  end
end

function Wire:close()
  self:lose(M.trouble("connection_lost", self.path .. ": closed by this client", true))
end

return M
