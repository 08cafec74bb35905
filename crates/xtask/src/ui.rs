//! `cargo xtask ui`: builds the console of `ui/` into `crates/http-ui`, and tests it.
//!
//! Its packages are in `ui/node_modules`, as `ui/package-lock.json` names them. The node is built from
//! the committed result, without Node.js.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::step::{self, cargo};
use crate::tree;

const MINUTE: Duration = Duration::from_secs(60);

/// Builds the console. `--check` fails if the committed one is not that of `ui/`; `--browser` tests the
/// committed one in Chromium, against a node; `--scale` measures it at a node with 10,000 agents,
/// 100,000 conversations and 10,000 partitions.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => {
            install()?;
            types()?;
            node("console", &["tools/build.mjs"], 2 * MINUTE)
        }
        ["--check"] => short(),
        ["--browser", ref rest @ ..] => browser(rest),
        ["--scale", ref rest @ ..] => scale(rest),
        _ => bail!("unknown arguments\nhint: --check, --browser [--pictures], or --scale"),
    }
}

/// The short form for `cargo xtask check`: types, and whether the committed console is that of `ui/`.
pub(crate) fn short() -> Result<()> {
    install()?;
    types()?;
    node(
        "console: as committed",
        &["tools/build.mjs", "--check"],
        2 * MINUTE,
    )
}

/// Tests every page in Chromium: content, keyboard, accessibility by axe, both themes, two widths.
fn browser(args: &[&str]) -> Result<()> {
    install()?;
    let build = &mut cargo(&["build", "--package", "telpher"]);
    step::run("build the node", build, 20 * MINUTE)?;
    let program = tree::root()?.join("target/debug/telpher");
    let program = program.to_string_lossy();
    let mut all = vec!["tools/browser.mjs", &*program];
    all.extend(args);
    node("console: in Chromium", &all, 20 * MINUTE)
}

/// Measures the pages at a large node: sizes of answers, numbers of requests, and the processor time of
/// the node. `--program PATH` takes another node than a release build.
fn scale(args: &[&str]) -> Result<()> {
    install()?;
    let (program, rest) = match args {
        ["--program", program, rest @ ..] => (std::path::absolute(program)?, rest),
        rest => {
            let build = &mut cargo(&["build", "--release", "--package", "telpher"]);
            step::run("build the node", build, 60 * MINUTE)?;
            (tree::root()?.join("target/release/telpher"), rest)
        }
    };
    let program = program.to_string_lossy();
    let mut all = vec!["tools/scale.mjs", &*program];
    // The shares of a core are those of an optimized program.
    if !matches!(args, ["--program", ..]) {
        all.push("--optimized");
    }
    all.extend(rest);
    node("console: at scale, in Chromium", &all, 30 * MINUTE)
}

/// Installs the packages of the lock file; fast if they are installed.
fn install() -> Result<()> {
    let folder = tree::root()?.join("ui");
    let lock = std::fs::read(folder.join("package-lock.json"))?;
    let stamp = folder.join("node_modules/.installed-lock.json");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    step::run(
        "console: packages",
        install.current_dir(&folder),
        5 * MINUTE,
    )?;
    Ok(std::fs::write(stamp, lock)?)
}

fn types() -> Result<()> {
    let script = "node_modules/typescript/bin/tsc";
    node("console: types", &[script, "--noEmit"], 3 * MINUTE)
}

fn node(title: &str, args: &[&str], limit: Duration) -> Result<()> {
    let mut command = Command::new("node");
    command.args(args).current_dir(tree::root()?.join("ui"));
    step::run(title, &mut command, limit)
}
