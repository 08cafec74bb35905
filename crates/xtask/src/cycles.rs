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
//!
//! `cycles/cycles.tsv` lists how many files of a crate are still in longer cycles. More fail the
//! check; fewer fail it, too, until the list is lowered.

mod graph;
mod names;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use graph::cycles;
use names::Names;

use crate::tree;

/// Files that may depend on each other.
const FILES_MAX: usize = 3;

/// Files in longer cycles: crate and count on each line.
const BACKLOG: &str = include_str!("cycles/cycles.tsv");

/// Checks all crates below `root`; returns the problems.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let backlog = backlog(BACKLOG)?;
    let mut problems = Vec::new();
    let mut crates = BTreeSet::new();
    for folder in tree::crates(root)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let found = long_cycles(&folder.join("src"))?;
        let listed = backlog.get(&*name).copied().unwrap_or(0);
        problems.extend(judge(&name, &found, listed));
        crates.insert(name.into_owned());
    }
    for name in backlog.keys().filter(|name| !crates.contains(*name)) {
        problems.push(format!("cycles.tsv: there is no crate `{name}`"));
    }
    Ok(problems)
}

/// Compares the cycles of a crate with the files that are listed for it.
fn judge(name: &str, cycles: &[BTreeSet<String>], listed: usize) -> Option<String> {
    let count = cycles.iter().map(BTreeSet::len).sum::<usize>();
    if count < listed {
        return Some(format!(
            "`{name}` has {count} files in cycles, fewer than the {listed} in cycles.tsv: lower it"
        ));
    }
    let lines = cycles.iter().map(|cycle| {
        let files: Vec<_> = cycle.iter().map(String::as_str).collect();
        format!("\n  {}: {}", cycle.len(), files.join(" "))
    });
    (count > listed).then(|| {
        format!(
            "`{name}` has {count} files in cycles of more than {FILES_MAX}, {listed} allowed:{}",
            lines.collect::<String>()
        )
    })
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

/// Reads lines of crate and count, separated by a tab.
fn backlog(text: &str) -> Result<BTreeMap<String, usize>> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, count) = line
                .split_once('\t')
                .with_context(|| format!("cycles.tsv: `{line}` is not crate and count"))?;
            Ok((name.to_owned(), count.parse()?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
