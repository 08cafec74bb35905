//! Cycles of files: in every crate, at most three files may depend on each other in a circle.
//!
//! A file depends on the file that defines a name which it imports or writes in a path, anywhere
//! outside of `#[cfg(test)]`. So:
//!
//! - `mod child;` alone is no dependency.
//! - `pub use child::Name;` is no dependency either, unless the file uses the name itself. Files that
//!   take `Name` from the parent depend on the child.
//! - An `impl` block is found by the names in it: a call of a method that another file adds to a type
//!   is not seen.
//! - Links in comments do not count.

mod graph;
mod names;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use graph::cycles;
use names::Names;

use crate::tree;

/// Files that may depend on each other.
const FILES_MAX: usize = 3;

/// Checks all crates below `root`; returns the problems.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for folder in tree::crates(root)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let found = long_cycles(&folder.join("src"))?;
        problems.extend(found.iter().map(|cycle| describe(&name, cycle)));
    }
    Ok(problems)
}

/// Describes a cycle of a crate that is too long.
fn describe(name: &str, cycle: &BTreeSet<String>) -> String {
    let files: Vec<_> = cycle.iter().map(String::as_str).collect();
    format!(
        "`{name}` has a cycle of {} files, more than {FILES_MAX}: {}",
        cycle.len(),
        files.join(" ")
    )
}

/// Cycles of more than [`FILES_MAX`] files in a crate, by the folder of its source.
fn long_cycles(source: &Path) -> Result<Vec<BTreeSet<String>>> {
    let mut found = Vec::new();
    for root in ["lib.rs", "main.rs"] {
        if source.join(root).exists() {
            let mut names = Names::default();
            read(source, Path::new(root), Vec::new(), &mut names)?;
            found.extend(cycles(&names.references()));
        }
    }
    found.retain(|cycle| cycle.len() > FILES_MAX);
    Ok(found)
}

/// Adds a file and the files of its child modules.
fn read(source: &Path, file: &Path, path: Vec<String>, names: &mut Names) -> Result<()> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(source.join(file)).with_context(|| shown.clone())?;
    let module = source::read(&text).map_err(|error| anyhow!("{shown}: {error}"))?;
    let folder: PathBuf = path.iter().collect();
    for child in &module.files {
        let candidates = [
            folder.join(format!("{child}.rs")),
            folder.join(child).join("mod.rs"),
        ];
        let Some(file) = candidates.iter().find(|it| source.join(it).exists()) else {
            bail!("{shown}: there is no file of the module `{child}`");
        };
        read(
            source,
            file,
            [&path[..], std::slice::from_ref(child)].concat(),
            names,
        )?;
    }
    names.add(path, &shown, module);
    Ok(())
}

#[cfg(test)]
mod tests;
