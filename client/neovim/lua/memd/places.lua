---Where the sockets are, and how to start a daemon, in the order of PROTOCOL.md.

local uv = vim.loop

local M = {}

local WRITABLE_BY_OTHERS = 18 -- 0o022
local STICKY = 512

local function absolute(path)
  return path ~= nil and path:sub(1, 1) == "/"
end

---XDG_STATE_HOME, else ~/.local/state. The XDG specification says to ignore relative values.
local function state_home(env)
  if absolute(env("XDG_STATE_HOME")) then
    return env("XDG_STATE_HOME")
  end
  return (absolute(env("HOME")) and env("HOME") or uv.os_homedir()) .. "/.local/state"
end

---Where to look for the agent socket. A path that was asked for, or MEMD_SOCKET, is the only one.
---@param env fun(name: string): string?
---@param argument string?
---@return string[]
function M.agent_sockets(env, argument)
  local chosen = argument or env("MEMD_SOCKET")
  if chosen and chosen ~= "" then
    return { absolute(chosen) and chosen or uv.cwd() .. "/" .. chosen }
  end
  local found = { state_home(env) .. "/memd/run/memd.sock" }
  if absolute(env("XDG_RUNTIME_DIR")) then
    table.insert(found, 1, env("XDG_RUNTIME_DIR") .. "/memd/memd.sock")
  end
  return found
end

local function ours(found)
  return found ~= nil and (found.uid == uv.getuid() or found.uid == 0)
end

---Why a socket is not to be trusted; nil if it is. Neovim cannot ask for the peer's credentials: the socket and its directory have
---to be ours or root's and the directory closed to others, so that nobody else can listen there.
---@param path string
---@return string?
function M.mistrusted(path)
  local directory = vim.fn.fnamemodify(path, ":h")
  local found = uv.fs_stat(directory)
  if not ours(uv.fs_lstat(path)) or not ours(found) then
    return path .. " is not yours"
  end
  if bit.band(found.mode, WRITABLE_BY_OTHERS) ~= 0 and bit.band(found.mode, STICKY) == 0 then
    return directory .. " can be written by others"
  end
end

local function trusted(path)
  local found = uv.fs_stat(path)
  return ours(found) and bit.band(found.mode, WRITABLE_BY_OTHERS) == 0
end

---MEMD_BIN, else the first memd in an entry of PATH that only we or root can have put there.
---@return string?, string?
function M.find_memd(env)
  local chosen = env("MEMD_BIN")
  if chosen and chosen ~= "" then
    if absolute(chosen) then
      return chosen
    end
    return nil, "MEMD_BIN=" .. chosen .. " is not an absolute path"
  end
  for _, folder in ipairs(vim.split(env("PATH") or "", ":", { plain = true })) do
    local path = folder .. "/memd"
    if absolute(folder) and trusted(folder) and trusted(path) and uv.fs_access(path, "X") then
      return path
    end
  end
  return nil, "no trusted memd is on PATH to start it; run `memd serve`, or set MEMD_BIN"
end

---Have memd started; the path of a socket that answers, or nil and why not.
---@return string?, string?
function M.start(env, socket)
  local program, problem = M.find_memd(env)
  if not program then
    return nil, problem
  end
  local command = { program, "socket", "--start" }
  if socket then
    vim.list_extend(command, { "--socket", socket })
  end
  local variables = vim.tbl_isempty(env.changed) and "" or env.changed
  local lines = {}
  local job = vim.fn.jobstart(command, {
    env = variables ~= "" and variables or nil,
    detach = true,
    stdout_buffered = true,
    on_stdout = function(_, data)
      lines = data
    end,
  })
  local status = vim.fn.jobwait({ job }, 15000)[1]
  vim.wait(100, function()
    return lines[1] ~= nil and lines[1] ~= ""
  end, 5)
  if status ~= 0 or not lines[1] or lines[1] == "" then
    return nil, program .. " could not start it (exit status " .. status .. ")"
  end
  return lines[1]
end

return M
