//! Starting memd when nobody listens.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, NOT_RUNNING};
use crate::places::{set, Env};

/// The command gives up after ten seconds by itself.
const START: Duration = Duration::from_secs(15);
const WRITABLE_BY_OTHERS: u32 = 0o022;
const LOOK: Duration = Duration::from_millis(5);

/// Have memd started; the path of a socket that answers. The command gets a process group of its own and none of our streams.
pub(crate) fn start(env: &Env, socket: Option<&Path>, until: Instant) -> Result<PathBuf, Error> {
    let refused = |message: String| {
        let message = format!("memd is not running and could not be started: {message}");
        Error::trouble(NOT_RUNNING, false, message)
    };
    let mut command = Command::new(find_memd(env)?);
    command.args(["socket", "--start"]);
    if let Some(path) = socket {
        command.arg("--socket").arg(path);
    }
    let kept =
        ["HOME", "PATH", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MEMD_SOCKET", "MEMD_BIN"];
    for name in kept {
        match env(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| refused(error.to_string()))?;
    let until = until.min(Instant::now() + START);
    let status = loop {
        match child.try_wait().map_err(|error| refused(error.to_string()))? {
            Some(status) => break status,
            None if Instant::now() >= until => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(refused("not in time".into()));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let (mut out, mut said) = (String::new(), String::new());
    let _ = child.stdout.take().map(|mut pipe| pipe.read_to_string(&mut out));
    let _ = child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut said));
    match out.trim() {
        path if status.success() && !path.is_empty() => Ok(path.into()),
        _ => Err(refused(format!("{} ({status})", said.trim()))),
    }
}

/// `MEMD_BIN`, else the first memd in an entry of `PATH` that only we or root can have put there.
fn find_memd(env: &Env) -> Result<PathBuf, Error> {
    let refused = |message: String| Error::trouble(NOT_RUNNING, false, format!("memd is not running, and {message}"));
    if let Some(chosen) = set(env, "MEMD_BIN") {
        let path = PathBuf::from(&chosen);
        return if path.is_absolute() { Ok(path) } else { Err(refused(format!("MEMD_BIN={chosen} is not an absolute path"))) };
    }
    std::env::split_paths(&env("PATH").unwrap_or_default())
        .filter(|folder| folder.is_absolute() && trusted(folder))
        .map(|folder| folder.join("memd"))
        .find(|path| trusted(path) && executable(path))
        .ok_or_else(|| refused("no trusted memd is on PATH to start it; run `memd serve`, or set MEMD_BIN".into()))
}

fn trusted(path: &Path) -> bool {
    let us = rustix::process::geteuid().as_raw();
    path.metadata().is_ok_and(|found| [us, 0].contains(&found.uid()) && found.mode() & WRITABLE_BY_OTHERS == 0)
}

fn executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
