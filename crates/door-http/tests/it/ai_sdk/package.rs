//! The npm package `ai`, and a Node that is new enough for it, installed once below the directory of
//! builds.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../compat/ai");

/// A Node that answers a line of JSON with a line of JSON.
pub(crate) struct Package {
    node: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Package {
    pub(crate) fn start() -> Self {
        let place = installed();
        let program = ["x64", "arm64"].map(|architecture| {
            let package = format!("node_modules/node-linux-{architecture}/bin/node");
            place.join(package)
        });
        let program = program.iter().find(|it| it.exists());
        let program = program.expect("npm has a Node for this machine");
        let mut node = Command::new(program)
            .arg(place.join("ai.mjs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: node.stdin.take().unwrap(),
            stdout: BufReader::new(node.stdout.take().unwrap()),
            node,
        }
    }

    /// Asks; an error is the text of the exception.
    pub(crate) fn ask(&mut self, question: &Value) -> Result<Value, String> {
        writeln!(self.stdin, "{question}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["value"].take()),
        }
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

fn installed() -> PathBuf {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    INSTALLED.get_or_init(install).clone()
}

/// Installs what the lock file names, unless that was done with the same one.
fn install() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ai");
    let lock = std::fs::read(format!("{SOURCE}/package-lock.json")).unwrap();
    std::fs::create_dir_all(&place).unwrap();
    let installed = place.join("installed-lock.json");
    if std::fs::read(&installed).ok().as_ref() != Some(&lock) {
        for name in ["package.json", "package-lock.json"] {
            std::fs::copy(format!("{SOURCE}/{name}"), place.join(name)).unwrap();
        }
        let mut npm = Command::new("npm");
        npm.args([
            "ci",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--loglevel=error",
        ]);
        let status = npm.current_dir(&place).status();
        let is_done = status.as_ref().is_ok_and(std::process::ExitStatus::success);
        assert!(
            is_done,
            "{npm:?}: {status:?}; is npm installed (`cargo xtask setup`)?"
        );
        std::fs::write(&installed, &lock).unwrap();
    }
    std::fs::copy(format!("{SOURCE}/ai.mjs"), place.join("ai.mjs")).unwrap();
    place
}
