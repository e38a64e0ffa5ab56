---A thin client for memd, the daemon that keeps the memory of agents. It needs nothing but the editor.
---
---    local client = require("memd").new({ name = "my-plugin" })
---    local opened, problem = client:call("session.open", { key = "my-plugin:42" })

local names = require("memd.names")
local places = require("memd.places")
local scrub = require("memd.scrub")
local wires = require("memd.wire")

local uv = vim.loop

local M = { version = "0.1.0", topics = names.topics, errors = names.errors, fenced = scrub.fenced, scrubber = scrub.scrubber }

local TIMEOUT_MS = 10000
local PAUSE_MS, LONGEST_PAUSE_MS = 20, 500
---What the daemon's own answer about a deadline gets to arrive: it says more than our giving up.
local MARGIN_MS = 250
local PASSING = { shutting_down = true, busy = true, too_many_requests = true }
local TROUBLE = { not_running = true, connection_lost = true, timeout = true, untrusted = true }

---@class memd.Options
---@field socket? string path of the socket; left out, the places of the protocol are looked at
---@field profile? string needed only where several are configured
---@field name? string recorded with every change
---@field context? "primary"|"subagent"|"cron"|"job"
---@field access? "none"|"read"|"add" less than the context has
---@field timeout_ms? integer what a call may take, reconnecting and repeating included
---@field autostart? boolean false leaves a daemon that is not running alone, as MEMD_AUTOSTART=0 does
---@field env? table<string, string> takes the place of the environment's variables of these names

---@class memd.Client
---@field call memd.Call
local Client = {}
Client.__index = Client

---A client; it connects when first used, and again when it must.
---@param options memd.Options?
---@return memd.Client
function M.new(options)
  options = options or {}
  local changed = options.env or {}
  local env = setmetatable({ changed = changed }, {
    __call = function(_, name)
      local value = changed[name]
      if value ~= nil then
        return value ~= "" and value or nil
      end
      return os.getenv(name)
    end,
  })
  return setmetatable({ options = options, env = env, timeout_ms = options.timeout_ms or TIMEOUT_MS, met = false }, Client)
end

local function request_id()
  local raw = { string.byte(uv.random(16), 1, 16) }
  raw[7], raw[9] = bit.bor(bit.band(raw[7], 15), 64), bit.bor(bit.band(raw[9], 63), 128)
  local text = string.format(string.rep("%02x", 16), unpack(raw))
  return table.concat({ text:sub(1, 8), text:sub(9, 12), text:sub(13, 16), text:sub(17, 20), text:sub(21) }, "-")
end

---Close the connection; the next call opens another.
function Client:close()
  if self.wire then
    self.wire:close()
    self.wire = nil
  end
end

---What the handshake settled, or nil and the error; connects if that has not been done.
---@return memd.HelloResult?, memd.Error?
function Client:hello()
  local _, problem = self:call("rpc.ping") -- over a restart too
  return not problem and self.said or nil, problem
end

---Call a method, over lost connections and restarts of the daemon. Mutations get a request_id, with which they are done once however
---often they are sent.
---@param method string
---@param params table?
---@return any result, memd.Error? problem one of the two is nil
function Client:call(method, params)
  uv.update_time()
  local waits = (params or {}).timeout_ms or 0
  local deadline = uv.now() + self.timeout_ms + waits
  local sent = vim.tbl_extend("force", {}, params or {})
  if names.mutations[method] then
    sent.request_id = sent.request_id or request_id()
  end
  local doubt, pause = false, PAUSE_MS -- doubt: whether the daemon may have carried out an earlier attempt
  while true do
    local result, problem = self:attempt(method, sent, deadline, waits)
    if not problem then
      return result
    end
    if doubt and method == "session.close" and problem.name == "no_such_session" then
      return {} -- closed by the attempt whose reply was lost
    end
    doubt = doubt or problem.sent == true
    uv.update_time()
    if not self:again(method, problem) or uv.now() + pause >= deadline then
      return nil, self.final(problem, sent, doubt)
    end
    vim.wait(pause)
    pause = math.min(2 * pause, LONGEST_PAUSE_MS)
  end
end

---Have on_event(event) called for these topics, or for all, until the function that is returned is called. Over restarts of the daemon
---it goes on where it was; an event with the topic events.lost says that some could not be kept.
---@param topics string[]
---@param on_event fun(event: memd.Event)
---@param since integer? the seq of an event, after which it begins
---@return (fun())?, memd.Error?
function Client:events(topics, on_event, since)
  local stream = { since = since, closed = false }
  local function subscribe(may_start)
    uv.update_time()
    local wire, hello, problem = self:open(uv.now() + self.timeout_ms, may_start)
    if not wire then
      return problem
    end
    local function tell(event)
      if event.topic == "events.lost" or event.seq > (stream.since or -1) then
        stream.since = math.max(event.seq, stream.since or 0)
        vim.schedule(function()
          if not stream.closed then
            on_event(event)
          end
        end)
      end
    end
    wire.on_note = function(method, params)
      if method == "event" and params[1] then
        tell(params[1])
      end
    end
    local wanted = { topics = topics, since_seq = stream.since }
    local reply, refused = wire:call("events.subscribe", wanted, self.timeout_ms)
    if refused then
      wire:close()
      return refused
    end
    if reply.lost then
      tell({ seq = reply.seq, topic = "events.lost", at = "", us = 0, profile = hello.profile, data = {} })
    end
    stream.since = stream.since or reply.seq
    stream.wire = wire
    wire.on_lost = function()
      vim.schedule(stream.resubscribe)
    end
  end
  function stream.resubscribe()
    if stream.closed then
      return
    end
    local problem = subscribe(false)
    if problem and (TROUBLE[problem.name] or PASSING[problem.name]) then
      vim.defer_fn(stream.resubscribe, 5 * PAUSE_MS)
    end
  end
  local problem = subscribe(true)
  if problem then
    return nil, problem
  end
  return function()
    stream.closed = true
    stream.wire:close()
  end
end

---Go through the daemon's certification: each reply is the next call's argument. Nil, or the error, which says what did not survive.
---@return memd.Error?
function Client:certify()
  local given, problem = self:call("rpc.certify.start")
  for _, step in ipairs({ "flag", "ints", "texts", "lists", "maps", "error", "end" }) do
    if problem then
      return problem
    end
    local reply
    reply, problem = self:call("rpc.certify." .. step, given)
    if step == "error" and problem and problem.name == "conflict" then
      reply, problem = { id = problem.data.id, value = problem.data.value }, nil
    end
    given = reply
  end
  if not problem and given.value ~= "certified" then
    problem = wires.trouble("invalid_reply", "the daemon did not certify this client", true)
  end
  return problem
end

function Client:attempt(method, params, deadline, waits)
  local wire, problem = self:connected(deadline)
  if not wire then
    return nil, problem
  end
  uv.update_time()
  local left = math.max(1, deadline - uv.now())
  if not params.deadline_ms then
    local own = math.max(1, left - waits)
    params = vim.tbl_extend("force", { deadline_ms = math.max(1, math.floor(own - math.min(MARGIN_MS, own / 10))) }, params)
  end
  return wire:call(method, params, left)
end

function Client:again(method, problem)
  local safe = names.mutations[method] or names.repeatable[method]
  if problem.name == "not_running" then
    return self.met
  elseif problem.name == "connection_lost" then
    return safe or not problem.sent
  elseif not PASSING[problem.name] then
    return false
  end
  if problem.name == "shutting_down" then
    self:close()
  end
  return safe or problem.data.outcome ~= "unknown"
end

function Client:connected(deadline)
  if self.wire and not self.wire.lost then
    return self.wire
  end
  local wire, said, problem = self:open(deadline, true)
  if not wire then
    return nil, problem
  end
  self.wire, self.said, self.met = wire, said, true
  return wire
end

---A new connection that has said hello.
function Client:open(deadline, may_start)
  local wire, problem = self:reach(deadline, may_start)
  if not wire then
    return nil, nil, problem
  end
  local options = self.options
  local hello = {
    client = { name = options.name or "memd-neovim", version = M.version },
    protocol = { names.protocol, names.protocol },
    profile = options.profile,
    context = options.context,
    access = options.access,
  }
  uv.update_time()
  local said, refused = wire:call("hello", hello, deadline - uv.now())
  if refused then
    wire:close()
    refused.sent = refused.sent and refused.name ~= "connection_lost" -- nothing but hello was
    return nil, nil, refused
  end
  return wire, said
end

function Client:reach(deadline, may_start)
  local first
  for _, path in ipairs(places.agent_sockets(self.env, self.options.socket)) do
    local wire, problem = self:dial(path, deadline)
    if wire or problem.name ~= "not_running" then
      return wire, problem
    end
    first = first or problem
  end
  if not may_start or self.options.autostart == false or self.env("MEMD_AUTOSTART") == "0" then
    return nil, first
  end
  local path, why = places.start(self.env, self.options.socket)
  if not path then
    return nil, wires.trouble("not_running", "memd is not running, and " .. why, false)
  end
  return self:dial(path, deadline)
end

function Client:dial(path, deadline)
  if not uv.fs_stat(path) then
    return nil, wires.trouble("not_running", "no memd listens at " .. path .. " (ENOENT)", false)
  end
  local problem = places.mistrusted(path)
  if problem then
    return nil, wires.trouble("untrusted", problem .. "; nothing was sent", false)
  end
  uv.update_time()
  return wires.dial(path, math.max(1, deadline - uv.now()))
end

---The error, made to say what is known of a mutation over all attempts, and with which request_id to ask again. A reply about the
---mutation itself is the last word.
function Client.final(problem, params, doubt)
  if params.request_id and (PASSING[problem.name] or TROUBLE[problem.name]) then
    local unknown = doubt or problem.data.outcome == "unknown"
    local known = { outcome = unknown and "unknown" or "none", request_id = params.request_id }
    problem.data = vim.tbl_extend("force", problem.data, known)
  end
  return problem
end

return M
