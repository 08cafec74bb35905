//! `cargo xtask package python`: builds the wheels and tries them where they are installed.
//!
//! Two wheels of one version: one with the program for this machine, and one for any platform, where
//! the client works and the command says how to run a node. maturin builds the first one; with zig as
//! the linker the program runs with glibc 2.17 and later (`manylinux_2_17`). The second one is the
//! first one without the program. Nothing is uploaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::stage::TARGET;
use crate::python::{self, Tools};
use crate::step;
use crate::tree;

const MINUTE: Duration = Duration::from_secs(60);

/// Tag of the oldest glibc that the wheel runs with.
const COMPATIBILITY: &str = "manylinux_2_17";

/// Builds the wheels, and tries each in a new environment.
pub(super) fn build(profile: &str) -> Result<()> {
    let tools = Tools::install(Path::new("python3"), "tools")?;
    let wheels = python::workspace()?.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    wheel(&tools, profile, &wheels)?;
    let native = the_wheel(&wheels, COMPATIBILITY)?;
    let mut pure = tools.command("python")?;
    pure.arg("tools/pure_wheel.py").arg(&native).arg(&wheels);
    step::run("wheel for any platform", &mut pure, MINUTE)?;
    let portable = the_wheel(&wheels, "py3-none-any")?;
    let program = try_native(&native)?;
    try_pure(&portable, &program)?;
    for wheel in [&native, &portable] {
        let size = fs::metadata(wheel)?.len() as f64 / f64::from(1 << 20);
        eprintln!("{} ({size:.1} MiB)", wheel.display());
    }
    Ok(())
}

/// Builds the wheel with the program; maturin checks its symbols against the tag.
fn wheel(tools: &Tools, profile: &str, wheels: &Path) -> Result<()> {
    let mut maturin = tools.command("maturin")?;
    maturin.args(["build", "--zig", "--compatibility", COMPATIBILITY]);
    maturin.args(["--profile", profile, "--target", TARGET, "--out"]);
    maturin.arg(wheels);
    // Builds with zig and static builds would replace each other in one directory.
    maturin.env("CARGO_TARGET_DIR", python::workspace()?.join("build"));
    step::run("wheel with the program", &mut maturin, 60 * MINUTE)
}

fn the_wheel(wheels: &Path, part: &str) -> Result<PathBuf> {
    let found = tree::files(wheels)?.into_iter();
    let mut found = found.filter(|path| path.to_string_lossy().contains(part));
    let wheel = found
        .next()
        .with_context(|| format!("no wheel {part} was built"))?;
    ensure!(found.next().is_none(), "there are several wheels {part}");
    Ok(wheel)
}

/// Installs a wheel, and nothing else, into a new environment; returns its folder of programs.
fn install(wheel: &Path, name: &str) -> Result<PathBuf> {
    let venv = python::workspace()?.join(name);
    if venv.exists() {
        fs::remove_dir_all(&venv)?;
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&venv);
    step::run(&format!("environment {name}"), &mut make, 2 * MINUTE)?;
    let bin = venv.join("bin");
    let mut pip = Command::new(bin.join("pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ]);
    step::run("install the wheel", pip.arg(wheel), 2 * MINUTE)?;
    Ok(bin)
}

/// Runs the node and the client of the installed wheel. Returns the program.
fn try_native(wheel: &Path) -> Result<PathBuf> {
    let bin = install(wheel, "installed")?;
    let program = bin.join("telpher");
    step::run(
        "telpher version",
        Command::new(&program).arg("version"),
        MINUTE,
    )?;
    let mut check = installed_python(&bin)?;
    check.arg("tools/try_installed.py").arg(&program);
    step::run("the node and the client", &mut check, 2 * MINUTE)?;
    Ok(program)
}

/// Runs the client of the wheel without a program against a node of the other one.
fn try_pure(wheel: &Path, program: &Path) -> Result<()> {
    let bin = install(wheel, "installed-pure")?;
    let mut serve = Command::new(bin.join("telpher"));
    serve
        .arg("serve")
        .env_remove("TELPHER_BINARY")
        .env("PATH", "");
    let output = serve.output().context("the command of the pure wheel")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(1) && said.contains("docker run"),
        "`telpher serve` of the pure wheel does not say how to run a node: {said}"
    );
    let mut check = installed_python(&bin)?;
    check.arg("tools/try_installed.py").arg(program);
    check.env("TELPHER_BINARY", program);
    step::run("the client of the pure wheel", &mut check, 2 * MINUTE)
}

/// Returns the Python of an environment, with no other package in reach.
fn installed_python(bin: &Path) -> Result<Command> {
    let mut command = Command::new(bin.join("python"));
    command.current_dir(python::folder()?).args(["-I"]);
    command.env_remove("TELPHER_BINARY");
    Ok(command)
}
