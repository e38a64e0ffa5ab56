---All tests. MEMD_BIN says which memd is tested.
---    MEMD_BIN=/path/to/memd nvim --headless --clean --cmd "set rtp+=." -c "luafile tests/run.lua"

local memd = require("memd")
local wires = require("memd.wire")
local uv = vim.loop

local here = vim.fn.fnamemodify(debug.getinfo(1).source:sub(2), ":p:h")
local bin = assert(os.getenv("MEMD_BIN"), "MEMD_BIN names the memd to test with")
local tests, homes = {}, {}

local function same(expected, found, what)
  if not vim.deep_equal(expected, found) then
    error(string.format("%s: expected %s, got %s", what or "", vim.inspect(expected), vim.inspect(found)), 2)
  end
end

local function vectors(name)
  local file = assert(io.open(here .. "/../../vectors/" .. name .. ".json"))
  local text = file:read("*a")
  file:close()
  return vim.json.decode(text)
end

local function from_hex(text)
  return (text:gsub("%x%x", function(pair)
    return string.char(tonumber(pair, 16))
  end))
end

local function run(home, ...)
  local command = string.format("env -i HOME=%s PATH=%q %s %s", home, os.getenv("PATH"), bin, table.concat({ ... }, " "))
  return vim.fn.system(command)
end

local function new_home()
  local home = uv.fs_mkdtemp("/tmp/memd-nvim-XXXXXX") -- short: a socket's path has 107 bytes
  table.insert(homes, home)
  return home
end

local function client(home, options)
  local env = { HOME = home, MEMD_BIN = bin, MEMD_SOCKET = "", MEMD_AUTOSTART = "" }
  for _, name in ipairs({ "RUNTIME_DIR", "STATE_HOME", "CONFIG_HOME", "DATA_HOME" }) do
    env["XDG_" .. name] = ""
  end
  return memd.new(vim.tbl_extend("force", { name = "nvim-test", timeout_ms = 60000, env = env }, options or {}))
end

local function texts(of)
  local found = assert(of:call("memory.read"))
  return vim.tbl_map(function(entry)
    return entry.text
  end, found.stores.memory.entries)
end

function tests.certified()
  same(nil, client(new_home()):certify())
end

function tests.a_session_started_from_nothing()
  local one = client(new_home())
  local opened = assert(one:call("session.open", { key = "nvim:1" }))
  local added = assert(one:call("memory.add", { target = "user", content = "Prefers Lua", session = opened.session }))
  same("Prefers Lua", added.entry.text)
  local shown = assert(one:call("session.snapshot", { session = opened.session }))
  assert(shown.stale and shown.changes_text:find("Prefers Lua", 1, true))
  assert(one:call("session.close", { session = opened.session }))
end

function tests.errors_are_typed()
  local one = client(new_home())
  local result, problem = one:call("memory.remove", { target = "memory", old_text = "nowhere" })
  same({ nil, "not_found", memd.errors.not_found, "none" }, { result, problem.name, problem.code, problem.data.outcome })
  local _, unknown = one:call("memory.nothing")
  same("method_not_found", unknown.name)
end

function tests.nobody_is_there()
  local _, problem = client(new_home(), { autostart = false }):hello()
  same("not_running", problem.name)
end

function tests.a_deadline_holds_and_the_connection_stays()
  local home = new_home()
  assert(client(home):call("memory.add", { target = "memory", content = "first" }))
  local one = client(home, { timeout_ms = 5000 })
  local before = assert(one:hello()).server.instance
  local wire = one.wire
  local _, problem = wire:call("events.wait", { timeout_ms = 600000, topics = { "memory.refused" } }, 100)
  same("timeout", problem.name)
  same({ "first" }, texts(one))
  same(before, one:hello().server.instance)
  assert(rawequal(wire, one.wire))
end

function tests.a_killed_daemon_loses_and_doubles_nothing()
  local home = new_home()
  local one = client(home)
  for number = 0, 30 do
    assert(one:call("memory.add", { target = "memory", content = "fact " .. number }))
    if number % 10 == 5 then
      uv.kill(one:hello().server.pid, "sigkill")
    end
  end
  same(31, #texts(one))
end

function tests.events_go_on_after_a_restart()
  local home = new_home()
  local one, seen = client(home), {}
  local stop = assert(one:events({ "memory.changed" }, function(event)
    table.insert(seen, event)
  end))
  assert(one:call("memory.add", { target = "memory", content = "before" }))
  run(home, "stop")
  assert(one:call("memory.add", { target = "memory", content = "after" }))
  vim.wait(20000, function()
    return #seen >= 2
  end, 10)
  stop()
  same({ "memory.changed", "memory.changed" }, { seen[1].topic, seen[2].topic })
  assert(seen[1].seq < seen[2].seq)
end

---What a waiting call hears of these bytes: whole, byte by byte, and with more behind them.
local function heard(data, msgid)
  local found = {}
  local ways = { { data }, vim.split(data, ""), { data .. data } }
  for _, chunks in ipairs(ways) do
    local wire = wires.new(nil, "vectors")
    wire.waiting[msgid] = function(problem, result)
      table.insert(found, { problem = problem, result = result })
    end
    wire.on_note = function(method)
      table.insert(found, { note = method })
    end
    for _, chunk in ipairs(chunks) do
      wire:feed(chunk)
    end
    same(nil, wire.lost)
  end
  return found
end

function tests.messages_of_the_server()
  local seen = 0
  for _, message in ipairs(vectors("messages").messages) do
    if message.from == "server" and message.value[2] ~= "rpc.protocol_error" then
      seen = seen + 1
      local note = message.gives == "notification"
      local found = heard(from_hex(message.hex), note and 0 or message.value[2])
      same(note and 4 or 3, #found, message.name)
      for _, one in ipairs(found) do
        if note then
          same(message.value[2], one.note, message.name)
        else
          same(message.gives == "error", one.problem ~= nil, message.name)
        end
      end
    end
  end
  assert(seen > 0)
end

function tests.errors_of_the_protocol()
  for _, expected in ipairs(vectors("errors").errors) do
    for _, found in ipairs(heard(from_hex(expected.map.hex), 5)) do
      local problem = found.problem
      same({ expected.name, expected.code, expected.retryable }, { problem.name, problem.code, problem.retryable })
    end
    for _, found in ipairs(heard(from_hex(expected.pair.hex), 5)) do
      same(1, (found.problem.message:find(expected.name, 1, true)))
    end
  end
end

function tests.requests_mean_the_same_again()
  local pack, seen = require("memd.pack"), 0
  for _, message in ipairs(vectors("messages").messages) do
    local exact = message.value and tonumber(message.value[2]) and message.value[2] <= 2 ^ 53 -- beyond, Lua's numbers lose digits, and nothing in memd is larger
    if message.from == "client" and message.gives == "request" and exact then
      seen = seen + 1
      same(message.value, (vim.mpack.Unpacker()(pack(message.value))), message.name)
    end
  end
  assert(seen > 0)
end

function tests.what_is_no_messagepack_ends_the_connection()
  local wire = wires.new(nil, "vectors")
  wire:feed("\193")
  same("connection_lost", wire.lost.name)
end

function tests.the_scrubber()
  local file = vectors("scrubber")
  for _, one in ipairs(file.scrubber) do
    local scrubber, gives = memd.scrubber(one.fence), {}
    for _, chunk in ipairs(one.chunks) do
      table.insert(gives, scrubber:feed(chunk))
    end
    table.insert(gives, scrubber:close())
    same(one.gives, gives, one.name)
    local whole, single = table.concat(one.chunks), {}
    for at = 1, #whole do
      table.insert(single, scrubber:feed(whole:sub(at, at)))
    end
    same(one.out, table.concat(single) .. scrubber:close(), one.name)
    for at = 0, #whole do
      same(one.out, scrubber:feed(whole:sub(1, at)) .. scrubber:feed(whole:sub(at + 1)) .. scrubber:close(), one.name)
    end
  end
  for _, one in ipairs(file.fenced) do
    same(one.out, memd.fenced(one.text, one.fence), one.name)
  end
end

local failed = 0
local sorted = vim.tbl_keys(tests)
table.sort(sorted)
for _, name in ipairs(sorted) do
  local ok, problem = xpcall(tests[name], debug.traceback)
  failed = failed + (ok and 0 or 1)
  io.stdout:write(string.format("%s %s\n%s", ok and "ok" or "FAILED", name, ok and "" or problem .. "\n"))
end
for _, home in ipairs(homes) do
  run(home, "stop")
  vim.fn.delete(home, "rf")
end
vim.cmd(failed > 0 and "cquit" or "qall!")
