//! Passes the git commit to the crate, for `telpher version`, and whether it is optimized.
//!
//! Only a release build has the commit: a debug build would be compiled again after each commit.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(unoptimized)");
    if std::env::var_os("OPT_LEVEL").is_some_and(|it| it == "0") {
        println!("cargo:rustc-cfg=unoptimized");
    }
    if std::env::var_os("PROFILE").is_none_or(|it| it != "release") {
        return;
    }
    let Some(directory) = git(&["rev-parse", "--absolute-git-dir"]) else {
        return;
    };
    // `logs/HEAD` changes with each commit, `HEAD` with each checkout.
    for file in ["HEAD", "logs/HEAD"] {
        let path = Path::new(&directory).join(file);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=TELPHER_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
