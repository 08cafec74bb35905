//! `cargo xtask python`: checks and tests the Python package.
//!
//! The tools and the packages that the tests use are in a virtual environment below `target/python`.
//! The tests start nodes from the debug build of `telpher`, or from the program that TELPHER_BINARY
//! names. `check` runs the same without the tests that are marked as long.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::compat::install_python;
use crate::step::{self, cargo};
use crate::tree;

const MINUTE: Duration = Duration::from_secs(60);

/// Versions of Python that types are checked for.
const VERSIONS: [&str; 4] = ["3.11", "3.12", "3.13", "3.14"];

/// Arguments of ruff: the package, and the scripts elsewhere that users or tasks run.
const RUFF: [&str; 6] = [
    "--no-cache",
    "--config",
    "pyproject.toml",
    ".",
    "../examples/python",
    "../compat/a2a",
];

/// Tests that `check` runs.
const SHORT: &[&str] = &["-m", "not long"];

/// Checks types and style, and runs all tests; with `--adapters`, those of the adapters that are named,
/// or of all. `--interpreter PATH`, which may be repeated, runs the
/// tests with another Python, too. Arguments after `--` go to pytest.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let [first, names @ ..] = args
        && first == "--adapters"
    {
        return adapters(names);
    }
    let mut interpreters = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--interpreter" => {
                let path = rest.next().context("--interpreter needs a path")?;
                interpreters.push(PathBuf::from(path));
            }
            "--" => break,
            _ => bail!(
                "unknown argument `{arg}`\nhint: --adapters [NAME...], --interpreter PATH, -- PYTEST-ARGUMENTS"
            ),
        }
    }
    let extra: Vec<&str> = rest.map(String::as_str).collect();
    let tools = Tools::install(Path::new("python3"), "tools")?;
    tools.check_sources()?;
    tools.test(&extra)?;
    for interpreter in interpreters {
        let name = interpreter.to_string_lossy().replace(['/', '.'], "-");
        Tools::install(&interpreter, &format!("tools{name}"))?.test(&extra)?;
    }
    Ok(())
}

/// Tests the adapters of agent frameworks, each in an environment with its framework.
fn adapters(names: &[String]) -> Result<()> {
    let build = &mut cargo(&["build", "--package", "telpher"]);
    step::run("build the node", build, 20 * MINUTE)?;
    let mut tests = Command::new("python3");
    tests.arg("tools/adapters.py").args(names);
    tests.current_dir(folder()?);
    step::forget_cargo(&mut tests);
    step::run("python: adapters", &mut tests, 60 * MINUTE)
}

/// The short form for `cargo xtask check`.
pub(crate) fn short() -> Result<()> {
    let tools = Tools::install(Path::new("python3"), "tools")?;
    tools.check_sources()?;
    tools.test(SHORT)
}

/// Returns the folder of the Python package.
pub(crate) fn folder() -> Result<PathBuf> {
    Ok(tree::root()?.join("python"))
}

/// Returns the folder for what the tasks build and install.
pub(crate) fn workspace() -> Result<PathBuf> {
    Ok(tree::root()?.join("target/python"))
}

/// A virtual environment with the tools.
pub(crate) struct Tools {
    venv: PathBuf,
}

impl Tools {
    /// Installs the tools for an interpreter into `target/python/NAME`; fast if they are installed.
    pub(crate) fn install(interpreter: &Path, name: &str) -> Result<Self> {
        let workspace = workspace()?;
        let requirements = folder()?.join("requirements-dev.txt");
        let venv = workspace.join(name);
        if !venv.join("bin/pip").is_file() {
            let mut make = Command::new(interpreter);
            make.args(["-m", "venv"]).arg(&venv);
            step::run("python environment", &mut make, 2 * MINUTE)?;
        }
        install_python(&workspace, name, &requirements)?;
        Ok(Self { venv })
    }

    /// Returns a command of the environment, in the folder of the Python package.
    pub(crate) fn command(&self, program: &str) -> Result<Command> {
        let mut command = Command::new(self.venv.join("bin").join(program));
        command.current_dir(folder()?);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.venv.join("bin")).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(paths)?);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        step::forget_cargo(&mut command);
        Ok(command)
    }

    fn check_sources(&self) -> Result<()> {
        let mut generated = self.command("python")?;
        generated.args(["tools/make_sync.py", "--check"]);
        step::run("python: the blocking surface", &mut generated, MINUTE)?;
        let mut format = self.command("ruff")?;
        format.args(["format", "--check"]).args(RUFF);
        step::run("python: format", &mut format, MINUTE)?;
        let mut lints = self.command("ruff")?;
        lints.arg("check").args(RUFF);
        step::run("python: lints", &mut lints, MINUTE)?;
        let cache = workspace()?.join("mypy");
        for version in VERSIONS {
            let mut types = self.command("mypy")?;
            types.arg("--cache-dir").arg(&cache);
            types.args(["--python-version", version]);
            step::run(
                &format!("python: mypy for {version}"),
                &mut types,
                5 * MINUTE,
            )?;
        }
        for version in VERSIONS {
            let mut types = self.command("pyright")?;
            types.env("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1");
            types.args(["--pythonversion", version]);
            step::run(
                &format!("python: pyright for {version}"),
                &mut types,
                5 * MINUTE,
            )?;
        }
        Ok(())
    }

    fn test(&self, extra: &[&str]) -> Result<()> {
        let program = match std::env::var_os("TELPHER_BINARY") {
            Some(program) => PathBuf::from(program),
            None => {
                let build = &mut cargo(&["build", "--package", "telpher"]);
                step::run("build telpher", build, 20 * MINUTE)?;
                tree::root()?.join("target/debug/telpher")
            }
        };
        let mut tests = self.command("python")?;
        tests.args([
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "telpher._pytest",
        ]);
        tests.args(extra);
        tests.env("PYTHONPATH", folder()?.join("src"));
        tests.env("TELPHER_BINARY", program);
        step::run("python: tests", &mut tests, 20 * MINUTE)
    }
}
