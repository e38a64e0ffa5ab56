//! Where the sockets are, in the order of PROTOCOL.md.

use std::path::{absolute, Path, PathBuf};
use std::sync::Arc;

/// Looks up a variable of the environment.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where to look for the agent socket. A path that was asked for, or `MEMD_SOCKET`, is the only one.
pub fn agent_sockets(env: &Env, argument: Option<&Path>) -> Vec<PathBuf> {
    let chosen = argument.map(PathBuf::from).or_else(|| set(env, "MEMD_SOCKET").map(Into::into));
    if let Some(path) = chosen {
        return vec![absolute(&path).unwrap_or(path)];
    }
    let mut found: Vec<PathBuf> = in_runtime_dir(env, "memd").into_iter().collect();
    found.push(state_home(env).join("memd/run/memd.sock"));
    found
}

/// Where to look for the operator socket.
pub fn operator_sockets(env: &Env) -> Vec<PathBuf> {
    let state = state_home(env).join("memd-operator/run/memd.sock");
    match in_runtime_dir(env, "memd-operator") {
        Some(path) if set(env, "MEMD_SOCKET").is_none() => vec![path, state],
        _ => vec![state],
    }
}

/// `XDG_STATE_HOME`, else `~/.local/state`. The XDG specification says to ignore relative values.
fn state_home(env: &Env) -> PathBuf {
    let chosen = env("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || PathBuf::from(set(env, "HOME").unwrap_or_else(|| "/".into()));
    chosen.unwrap_or_else(|| home().join(".local/state"))
}

fn in_runtime_dir(env: &Env, folder: &str) -> Option<PathBuf> {
    let runtime = PathBuf::from(set(env, "XDG_RUNTIME_DIR")?);
    runtime.is_absolute().then(|| runtime.join(folder).join("memd.sock"))
}

pub(crate) fn set(env: &Env, name: &str) -> Option<String> {
    env(name).filter(|value| !value.is_empty())
}
