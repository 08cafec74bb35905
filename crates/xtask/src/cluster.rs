//! `cargo xtask cluster`: nodes and links of a cluster fail while clients write and read.
//!
//! A Kafka client writes and another reads, and every acknowledgement is compared with the log. Then
//! clients at all nodes append to and read registers under the same faults, and porcupine checks that
//! the histories are linearizable. The nodes run in network namespaces, so that single links can be
//! cut. That needs root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::compat::{install_python, python_of};
use crate::footprint::built;
use crate::step::{self, cargo};

/// Directory of the scripts.
const SCRIPTS: &str = "compat/cluster";

/// Go module that checks histories.
const CHECKER: &str = "compat/cluster/porcupine";

/// Directory of the Python environment and the checker.
const WORKSPACE: &str = "target/compat";

/// Name of the Python environment below it.
const VENV: &str = "cluster";

/// Options of runs that only kill nodes, and record no histories.
const ENDURANCE: [&str; 2] = ["--kills", "--minutes"];

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(12 * 60 * 60);
const CHECK_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs the named faults, or all. `--rounds N` repeats them; `--kills N` and `--minutes N` kill nodes
/// until N processes were killed, or for N minutes.
///
/// # Errors
/// When a client sees an acknowledged record lost, doubled or reordered, when a history is not
/// linearizable, or if namespaces cannot be created.
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
    let checker = build_checker(&workspace)?;
    let script = |name: &str| -> Result<Command> {
        let mut command = Command::new(python_of(&workspace, VENV));
        command.arg(scripts.join(name)).arg(built("debug")?);
        Ok(command)
    };
    let mut faults = script("faults.py")?;
    step::run("faults of nodes and links", faults.args(args), RUN_LIMIT)?;
    if args.iter().any(|arg| ENDURANCE.contains(&arg.as_str())) {
        return Ok(());
    }
    let history = workspace.join("history.jsonl");
    let mut register = script("register.py")?;
    step::run(
        "histories of registers",
        register.arg(&history).args(args),
        RUN_LIMIT,
    )?;
    let mut check = Command::new(checker);
    step::run("porcupine", check.arg(&history), CHECK_LIMIT)
}

/// Builds the checker of histories after its own tests, which show that it finds faults.
fn build_checker(workspace: &Path) -> Result<PathBuf> {
    ensure!(
        step::is_installed("go"),
        "Go is not installed\nhint: see https://go.dev/doc/install"
    );
    let checker = workspace.join("porcupine");
    let mut test = Command::new("go");
    test.args(["-C", CHECKER, "test", "./..."]);
    step::run("test the checker", &mut test, BUILD_LIMIT)?;
    let mut build = Command::new("go");
    build.args(["-C", CHECKER, "build", "-o"]).arg(&checker);
    step::run("build the checker", build.arg("."), BUILD_LIMIT)?;
    Ok(checker)
}
