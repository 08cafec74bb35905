//! The Debian package: the static binary, its service, manual pages and completions.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::stage::{fresh, install, static_binary, write};
use crate::step;

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Files of the package that are not made from the binary: source, target, permissions.
const FILES: [(&str, &str, u32); 4] = [
    (
        "packaging/systemd/telpher.service",
        "usr/lib/systemd/system/telpher.service",
        0o644,
    ),
    (
        "packaging/debian/telpher.toml",
        "etc/telpher/telpher.toml",
        0o644,
    ),
    ("LICENSE", "usr/share/doc/telpher/copyright", 0o644),
    ("CHANGELOG.md", "usr/share/doc/telpher/CHANGELOG.md", 0o644),
];

/// Completions by shell, and where its packages put them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/telpher"),
    ("zsh", "usr/share/zsh/vendor-completions/_telpher"),
    ("fish", "usr/share/fish/vendor_completions.d/telpher.fish"),
];

/// Builds the package, installs it into a directory of its own, runs it there, and removes it.
pub(super) fn build(profile: &str) -> Result<()> {
    let binary = static_binary(profile)?;
    let root = fresh("deb/root")?;
    install(&binary, &root.join("usr/bin/telpher"), 0o755)?;
    for (from, to, mode) in FILES {
        install(Path::new(from), &root.join(to), mode)?;
    }
    for (shell, to) in COMPLETIONS {
        let text = step::read(Command::new(&binary).args(["completions", shell]))?;
        write(text.as_bytes(), &root.join(to), 0o644)?;
    }
    let pages = root.join("usr/share/man/man1");
    std::fs::create_dir_all(&pages)?;
    step::read(Command::new(&binary).args(["man", "--dir"]).arg(&pages))?;
    let compress = &mut Command::new("sh");
    compress.args(["-c", "gzip -9n *.1"]).current_dir(&pages);
    step::run("compress the manual pages", compress, LIMIT)?;
    let package = pack(&root)?;
    try_package(&package)
}

/// Makes the package of a directory.
fn pack(root: &Path) -> Result<std::path::PathBuf> {
    let control = std::fs::read_to_string("packaging/debian/control")?;
    let size = step::read(
        Command::new("du")
            .args(["-sk", "--apparent-size"])
            .arg(root),
    )?;
    let size = size.split_whitespace().next().unwrap_or("0");
    let version = env!("CARGO_PKG_VERSION");
    let architecture = step::read(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let control = control
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", size);
    write(control.as_bytes(), &root.join("DEBIAN/control"), 0o644)?;
    install(
        Path::new("packaging/debian/conffiles"),
        &root.join("DEBIAN/conffiles"),
        0o644,
    )?;
    for script in ["postinst", "prerm", "postrm"] {
        let from = Path::new("packaging/debian").join(script);
        install(&from, &root.join("DEBIAN").join(script), 0o755)?;
    }
    let name = format!("target/package/telpher_{version}_{architecture}.deb");
    let package = std::env::current_dir()?.join(name);
    let build = &mut Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(root)
        .arg(&package);
    step::run("build the Debian package", build, LIMIT)?;
    Ok(package)
}

/// Installs, runs, removes and purges the package in a minimal Debian system, which needs root.
fn try_package(package: &Path) -> Result<()> {
    let is_root = step::read(Command::new("id").arg("-u"))?.trim() == "0";
    ensure!(
        is_root,
        "{} is built; trying it needs root\nhint: sudo --preserve-env=PATH cargo xtask package deb",
        package.display()
    );
    let system = std::env::current_dir()?.join("target/package/system");
    if !system.join("usr/bin/dpkg").exists() {
        let system = fresh("system")?;
        let make = &mut Command::new("debootstrap");
        make.args(["--variant=minbase", "--include=adduser", "stable"])
            .arg(&system);
        step::run("make a minimal system", make, LIMIT)
            .context("hint: apt-get install debootstrap")?;
    }
    let name = package.file_name().context("a package has a name")?;
    install(package, &system.join("root").join(name), 0o644)?;
    let script = include_str!("try_deb.sh");
    let run = &mut Command::new("chroot");
    run.arg(&system)
        .args(["sh", "-ec", script, "try", &name.to_string_lossy()]);
    step::run("install, run and remove the package", run, LIMIT)
}
