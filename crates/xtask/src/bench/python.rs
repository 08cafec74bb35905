//! `cargo xtask bench python`: the Python client and its peers, measured by `bench/python/bench.py`.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::files::{PEERS, RESULTS};
use crate::compat::{install_python, python_of};
use crate::{footprint, python, step};

pub(super) const NAME: &str = "python";
pub(super) const ABOUT: &str =
    "the Python client, compared with a bare asyncio client, nats-py, redis-py and httpx";

const SCRIPT: &str = "bench/python/bench.py";
const REQUIREMENTS: &str = "bench/python/requirements.txt";
const VENV: &str = "bench";
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Runs the cases, and stores the result.
pub(super) fn run(commit: &str) -> Result<()> {
    let peers = Path::new(PEERS);
    for server in ["nats-server", "redis-server"] {
        ensure!(
            peers.join(server).is_file() || step::is_installed(server),
            "no {server}\nhint: cargo xtask peers nats redis, or install the Debian package {server}"
        );
    }
    let workspace = python::workspace()?;
    install_python(&workspace, VENV, Path::new(REQUIREMENTS))?;
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(peers.to_path_buf()).chain(env::split_paths(&path));
    let mut command = Command::new(python_of(&workspace, VENV));
    command.args([SCRIPT, "--commit", commit, "--out"]);
    command.arg(Path::new(RESULTS).join(NAME));
    command.env("PATH", env::join_paths(paths)?);
    command.env("TELPHER_BINARY", footprint::executable()?);
    step::run(NAME, &mut command, LIMIT)
}
