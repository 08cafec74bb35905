//! `cargo xtask package NAME`: builds what a node is installed from, below `target/package`.

mod container;
mod deb;
mod kubernetes;
mod python;
mod stage;

use anyhow::{Result, bail};

/// Builds the named packages, with the optimization of `--profile NAME` (`release`).
///
/// # Errors
/// When a package is unknown, cannot be built, or fails its checks.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut profile = "release";
    let mut names = Vec::new();
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match (arg, arg.strip_prefix("--profile=")) {
            ("--profile", _) => match args.next() {
                Some(name) => profile = name,
                None => bail!("--profile wants a name\nhint: release, demo or dev"),
            },
            (_, Some(name)) => profile = name,
            (name, None) => names.push(name),
        }
    }
    if names.is_empty() {
        bail!("name what to build\nhint: cargo xtask package deb container kubernetes python");
    }
    for name in names {
        match name {
            "deb" => deb::build(profile)?,
            "container" => container::build(profile)?,
            "kubernetes" => kubernetes::check()?,
            "python" => python::build(profile)?,
            _ => bail!("unknown package `{name}`\nhint: deb, container, kubernetes, python"),
        }
    }
    Ok(())
}
