//! `cargo xtask cluster`: nodes and links of a cluster fail while a Kafka client writes and another
//! reads; then every acknowledgement is compared with the log.
//!
//! The nodes run in network namespaces, so that single links can be cut. That needs root.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::compat::{install_python, python_of};
use crate::footprint::built;
use crate::step::{self, cargo};

/// Directory of the scripts.
const SCRIPTS: &str = "compat/cluster";

/// Directory of the Python environment.
const WORKSPACE: &str = "target/compat";

/// Name of the Python environment below it.
const VENV: &str = "cluster";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// Runs the named faults, or all; `--rounds N` repeats them.
///
/// # Errors
/// When a client sees an acknowledged record lost, doubled or reordered, or if namespaces cannot be
/// created.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let is_root = Command::new("id").arg("-u").output()?.stdout == b"0\n";
    ensure!(
        is_root,
        "network namespaces need root\nhint: sudo --preserve-env=PATH cargo xtask cluster"
    );
    let build = &mut cargo(&["build", "--package", "telpher"]);
    step::run("build the node", build, BUILD_LIMIT)?;
    let workspace = std::env::current_dir()?.join(WORKSPACE);
    std::fs::create_dir_all(&workspace)?;
    let scripts = Path::new(SCRIPTS);
    install_python(&workspace, VENV, &scripts.join("requirements.txt"))?;
    let mut faults = Command::new(python_of(&workspace, VENV));
    faults.arg(scripts.join("faults.py"));
    faults.arg(built("debug")?).args(args);
    step::run("faults of nodes and links", &mut faults, RUN_LIMIT)
}
