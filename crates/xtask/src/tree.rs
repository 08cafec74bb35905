//! The files of the workspace, for tasks that read our sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Returns the folder of the workspace.
pub(crate) fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("the workspace is two folders up")
}

/// Returns the folders of our crates, sorted.
pub(crate) fn crates(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    folders.sort();
    Ok(folders)
}

/// Returns all files below a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(self::files(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}

/// Returns whether a file has only tests: `tests.rs`, or a file in a folder `tests` below `root`.
pub(crate) fn is_tests(root: &Path, path: &Path) -> bool {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.ends_with("tests.rs") || path.iter().any(|part| part == "tests")
}
