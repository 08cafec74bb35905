//! The binary of a package, and the directories that packages are made in.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::step::{self, cargo};

const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
const SHORT_LIMIT: Duration = Duration::from_secs(60);

/// The target of the packages. A static binary needs it named, so that build scripts and macros are not
/// static too.
pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the static binary: it needs no library, and runs on an empty base. Returns its path,
/// without symbols.
pub(super) fn static_binary(profile: &str) -> Result<PathBuf> {
    let words = [
        "build",
        "--package",
        "telpher",
        "--target",
        TARGET,
        "--profile",
        profile,
    ];
    let build = &mut cargo(&words);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static");
    step::run("build the static binary", build, BUILD_LIMIT)?;
    let directory = match profile {
        "dev" => "debug",
        other => other,
    };
    let built = Path::new("target")
        .join(TARGET)
        .join(directory)
        .join("telpher");
    let stripped = fresh("binary")?.join("telpher");
    let strip = &mut Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(&built);
    step::run("strip symbols", strip, SHORT_LIMIT)?;
    let kind = step::read(Command::new("readelf").arg("--dynamic").arg(&stripped))?;
    ensure!(
        !kind.contains("NEEDED"),
        "the binary needs libraries:\n{kind}"
    );
    Ok(stripped)
}

/// Returns an empty directory below `target/package`.
pub(super) fn fresh(name: &str) -> Result<PathBuf> {
    let directory = std::env::current_dir()?.join("target/package").join(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Copies a file, with the directories of the target and these permissions.
pub(super) fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = std::fs::read(from).with_context(|| from.display().to_string())?;
    write(&bytes, to, mode)
}

/// Writes a file, with its directories and these permissions.
pub(super) fn write(bytes: &[u8], to: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(directory) = to.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(to, bytes).with_context(|| to.display().to_string())?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode))?;
    Ok(())
}
