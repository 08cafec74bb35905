//! `cargo xtask compat --a2a-tck DIR`: the A2A technology compatibility kit from a checkout of
//! a2aproject/a2a-tck, against servers of a2a-sdk whose tasks are in a node.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::client::{install_python, python_of};
use crate::footprint::built;
use crate::{python, step};

const REQUIREMENTS: &str = "compat/a2a/requirements.txt";
const SCRIPT: &str = "compat/a2a/tck.py";
const VENV: &str = "venv-a2a-tck";
/// Time limit of three runs of about two minutes.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs the kit in the directory. Its reports are written below the workspace.
///
/// # Errors
/// When a test fails with a node that passes with the store of a2a-sdk in memory.
pub(super) fn run(workspace: &Path, directory: &Path) -> Result<()> {
    let directory = directory
        .canonicalize()
        .with_context(|| format!("no directory {}", directory.display()))?;
    install_python(workspace, VENV, Path::new(REQUIREMENTS))?;
    let mut command = Command::new(python_of(workspace, VENV));
    command
        .arg(SCRIPT)
        .arg(directory)
        .arg(workspace.join("a2a-tck"));
    command.env("PYTHONPATH", python::folder()?.join("src"));
    command.env("TELPHER_BINARY", built("debug")?);
    step::run("A2A TCK", &mut command, LIMIT)
}
