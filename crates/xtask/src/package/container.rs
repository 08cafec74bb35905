//! The context of the container image, and the image where `buildah` is installed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::stage::{fresh, install, static_binary};
use crate::step::{self, is_installed};

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Makes the context in `target/package/container`, runs the binary on that empty base, and builds
/// the image.
pub(super) fn build(profile: &str) -> Result<()> {
    let binary = static_binary(profile)?;
    let context = fresh("container")?;
    install(
        Path::new("packaging/container/Containerfile"),
        &context.join("Containerfile"),
        0o644,
    )?;
    let root = context.join("root");
    install(&binary, &root.join("telpher"), 0o755)?;
    std::fs::create_dir_all(root.join("data"))?;
    // Dumps of a program that asked for a temporary directory would have no place otherwise.
    std::fs::create_dir_all(root.join("tmp"))?;
    let empty = &mut Command::new("unshare");
    empty
        .args(["--user", "--map-root-user", "--root"])
        .arg(&root);
    empty.args(["/telpher", "version"]);
    step::run("run the binary on an empty base", empty, LIMIT)?;
    if !is_installed("buildah") {
        eprintln!(
            "   the context is in {}; no image: buildah is not installed\n   \
             hint: docker build -f {0}/Containerfile {0}",
            context.display()
        );
        return Ok(());
    }
    let image = &mut Command::new("buildah");
    image.args(["build", "--isolation", "chroot", "--tag", "telpher", "-f"]);
    image.arg(context.join("Containerfile")).arg(&context);
    step::run("build the image", image, LIMIT)
}
