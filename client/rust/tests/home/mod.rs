//! A daemon of its own for a test. `MEMD_BIN` says which memd is tested.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use memd_client::{Client, Options};

static NEXT: AtomicU32 = AtomicU32::new(0);

pub struct Home {
    dir: PathBuf,
    bin: String,
}

impl Home {
    pub fn new() -> Self {
        let bin = std::env::var("MEMD_BIN").expect("MEMD_BIN names the memd to test with");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/tmp/memd-rust-{}-{number}", std::process::id())); // short: a socket's path has 107 bytes
        std::fs::create_dir(&dir).unwrap();
        Home { dir, bin }
    }

    pub fn options(&self) -> Options {
        let (dir, bin) = (self.dir.display().to_string(), self.bin.clone());
        let env = move |name: &str| match name {
            "HOME" => Some(dir.clone()),
            "MEMD_BIN" => Some(bin.clone()),
            "PATH" => std::env::var(name).ok(),
            _ => None,
        };
        Options { name: "rust-test".into(), timeout: Duration::from_secs(60), env: Arc::new(env), ..Options::default() }
    }

    pub fn client(&self) -> Client {
        Client::new(self.options())
    }

    pub fn memd(&self, arguments: &[&str]) {
        let mut command = Command::new(&self.bin);
        command.args(arguments).env_clear().env("HOME", &self.dir).env("PATH", std::env::var("PATH").unwrap());
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.memd(&["stop"]);
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
