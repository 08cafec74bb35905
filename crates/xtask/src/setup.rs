//! `cargo xtask setup`: installs the programs that building and testing need in addition to the
//! Rust toolchain.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::step::expect_none;
use crate::step::{self, cargo, is_installed};

/// A program, and the Debian package that contains it.
struct RequiredProgram {
    program: &'static str,
    package: &'static str,
    reason: &'static str,
}

/// Programs that building and testing use. The `x` script checks for `cc` too, before xtask is
/// built.
const NEEDS: [RequiredProgram; 12] = [
    RequiredProgram {
        program: "cc",
        package: "build-essential",
        reason: "links the programs and compiles their few C parts",
    },
    RequiredProgram {
        program: "curl",
        package: "curl",
        reason: "the test of the README's commands runs them unchanged",
    },
    RequiredProgram {
        program: "chromium",
        package: "chromium",
        reason: "tests of web pages open them in it",
    },
    RequiredProgram {
        program: "kcat",
        package: "kcat",
        reason: "tests of the Kafka listener use librdkafka",
    },
    RequiredProgram {
        program: "npm",
        package: "npm",
        reason: "the console is built and conversations are tested with packages from npm",
    },
    RequiredProgram {
        program: "openssl",
        package: "openssl",
        reason: "the test of the console over TLS makes a certificate",
    },
    RequiredProgram {
        program: "pg_lsclusters",
        package: "postgresql",
        reason: "tests of the archive start a server of their own",
    },
    RequiredProgram {
        program: "psql",
        package: "postgresql-client",
        reason: "tests of the archive query that server",
    },
    RequiredProgram {
        program: "systemd-analyze",
        package: "systemd",
        reason: "tests of the packaging verify the service",
    },
    RequiredProgram {
        program: "redis-server",
        package: "redis-server",
        reason: "tests of shared quotas start servers of their own",
    },
    RequiredProgram {
        program: "redis-cli",
        package: "redis-tools",
        reason: "tests of shared quotas query those servers",
    },
    RequiredProgram {
        program: "tmux",
        package: "tmux",
        reason: "tests of `telpher top` press its keys and read its screen",
    },
];

/// Python's `venv` module, which no program of its own indicates.
const VENV: RequiredProgram = RequiredProgram {
    program: "python3 -m venv",
    package: "python3-venv",
    reason: "tests of the Python package and of the SLIM listener install packages from PyPI",
};

/// Components that a minimal toolchain lacks, by `cargo` command.
const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Installs everything that is missing.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    install(&NEEDS)?;
    let mut probe = Command::new("python3");
    if step::read(probe.args(["-c", "import ensurepip, venv"])).is_err() {
        install(&[VENV])?;
    }
    for (command, component) in COMPONENTS {
        if step::read(&mut cargo(&[command, "--version"])).is_err() {
            let mut rustup = Command::new("rustup");
            rustup.args(["component", "add", component]);
            step::run(&format!("install {component}"), &mut rustup, LIMIT)?;
        }
    }
    Ok(())
}

fn install(needs: &[RequiredProgram]) -> Result<()> {
    let missing: Vec<&RequiredProgram> = needs
        .iter()
        .filter(|need| !is_installed(need.program))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        eprintln!(
            "{} is missing ({}): {}",
            need.program, need.package, need.reason
        );
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    if !is_installed("apt-get") {
        bail!(
            "install {} with this system's package manager",
            packages.join(" ")
        );
    }
    step::run(
        "apt-get update",
        apt_get(&["update"])?.arg("--quiet"),
        LIMIT,
    )?;
    let install = &mut apt_get(&["install", "--yes", "--quiet", "--no-install-recommends"])?;
    step::run("apt-get install", install.args(packages), LIMIT)
}

/// Returns `apt-get` as root: directly, or by `sudo`, which may ask for a password.
fn apt_get(args: &[&str]) -> Result<Command> {
    let root = step::read(Command::new("id").arg("-u"))
        .context("cannot read the user id")?
        .trim()
        == "0";
    let mut command = match root {
        true => Command::new("apt-get"),
        false if is_installed("sudo") => {
            let mut sudo = Command::new("sudo");
            sudo.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
            sudo
        }
        false => bail!(
            "sudo is not installed\nhint: run `apt-get {}` as root",
            args.join(" ")
        ),
    };
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    Ok(command)
}
