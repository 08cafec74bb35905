//! `cargo xtask monitoring`: the rules and the dashboard of `packaging/monitoring` in Prometheus.
//!
//! promtool checks the rules and runs their tests. Then a Prometheus reads real nodes under load:
//! every query of the dashboard must have data, and alerts must fire when servers are away and nodes
//! are killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::footprint::built;
use crate::step::{self, cargo, expect_none};

/// Directory of the rules and the dashboard.
const FILES: &str = "packaging/monitoring";

/// Script that runs the nodes and Prometheus.
const SCRIPT: &str = "compat/monitoring/live.py";

/// Directory of Prometheus and of the data of a run.
const WORKSPACE: &str = "target/monitoring";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(10 * 60);
const CHECK_LIMIT: Duration = Duration::from_secs(2 * 60);

/// Runs the task.
///
/// # Errors
/// When a rule or its test is wrong, a query of the dashboard has no data, or an alert does not fire.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let workspace = std::env::current_dir()?.join(WORKSPACE);
    std::fs::create_dir_all(&workspace)?;
    let promtool = program("promtool", &workspace)?;
    for (title, words) in [
        ("check rules", ["check", "rules", "telpher.rules.yml"]),
        ("check configuration", ["check", "config", "prometheus.yml"]),
        ("test rules", ["test", "rules", "telpher.rules.test.yml"]),
    ] {
        let mut command = Command::new(&promtool);
        step::run(title, command.args(words).current_dir(FILES), CHECK_LIMIT)?;
    }
    let build = &mut cargo(&["build", "--package", "telpher"]);
    step::run("build the node", build, BUILD_LIMIT)?;
    let mut live = Command::new("python3");
    live.arg(SCRIPT)
        .args(["--files", FILES])
        .arg("--prometheus")
        .arg(program("prometheus", &workspace)?)
        .arg("--telpher")
        .arg(built("debug")?)
        .arg("--workspace")
        .arg(&workspace);
    step::run("rules and dashboard in Prometheus", &mut live, RUN_LIMIT)
}

/// Returns the path of a program of Debian's package `prometheus`. Unless it is installed, the package
/// is unpacked in the workspace: an installation would start a service.
fn program(name: &str, workspace: &Path) -> Result<PathBuf> {
    if step::is_installed(name) {
        return Ok(name.into());
    }
    let unpacked = workspace.join("prometheus");
    let path = unpacked.join("usr/bin").join(name);
    if !path.is_file() {
        let mut download = Command::new("apt-get");
        download.args(["download", "prometheus"]);
        let download = download.current_dir(workspace);
        step::run("download Prometheus", download, CHECK_LIMIT)
            .context("hint: install promtool and prometheus, and repeat")?;
        let mut unpack = Command::new("sh");
        unpack.args([
            "-c",
            "dpkg -x \"$(ls -t prometheus_*.deb | head -n 1)\" prometheus",
        ]);
        step::run(
            "unpack Prometheus",
            unpack.current_dir(workspace),
            CHECK_LIMIT,
        )?;
    }
    Ok(path)
}
