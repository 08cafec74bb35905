//! Copy of a crate in a workspace of its own, for mutation. Its dependencies stay in their usual
//! directories.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::table::{Edit, Mutant, Subject};

/// Directory of the crate in the copy. It differs from the crate's path in its own workspace, by
/// which Cargo distinguishes the build output of the two.
const COPY: &str = "mutant";
const MEMBERS: &str = "members = [\"crates/*\"]";
const PATH: &str = "path = \"crates/";

pub(super) struct CrateCopy {
    root: PathBuf,
}

/// An applied mutation, undone on drop.
pub(super) struct AppliedMutation {
    files: Vec<(PathBuf, String)>,
}

impl Drop for AppliedMutation {
    fn drop(&mut self) {
        for (path, text) in self.files.iter().rev() {
            if let Err(error) = fs::write(path, text) {
                eprintln!("   cannot restore {}: {error}", path.display());
            }
        }
    }
}

impl CrateCopy {
    /// Brings the copy up to date. Unchanged files are not written, so they are not built again.
    pub(super) fn make(subject: &Subject) -> Result<Self> {
        let root = PathBuf::from("target/mutants").join(subject.folder);
        fs::create_dir_all(&root).context("target/mutants")?;
        let workspace = replaced(
            &read(Path::new("Cargo.toml"))?,
            MEMBERS,
            &MEMBERS.replace("crates/*", COPY),
        )?;
        let crates = Path::new("crates").canonicalize().context("crates")?;
        let workspace = workspace.replace(PATH, &format!("path = \"{}/", crates.display()));
        update(&root.join("Cargo.toml"), workspace.as_bytes())?;
        update(
            &root.join("Cargo.lock"),
            read(Path::new("Cargo.lock"))?.as_bytes(),
        )?;
        copy_directory(&Path::new("crates").join(subject.folder), &root.join(COPY))?;
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of the last proof's output.
    pub(super) fn log(&self) -> PathBuf {
        self.root.join("proof.log")
    }

    /// Checks that the mutant's edits still match the source.
    pub(super) fn check(&self, mutant: &Mutant) -> Result<()> {
        for edit in mutant.edits {
            let text = read(&self.path(edit))?;
            replaced(&text, edit.text, edit.replacement)
                .with_context(|| format!("mutant `{}`, {}", mutant.name, edit.file))?;
        }
        Ok(())
    }

    pub(super) fn mutate(&self, mutant: &Mutant) -> Result<AppliedMutation> {
        let mut broken = AppliedMutation { files: Vec::new() };
        for edit in mutant.edits {
            let path = self.path(edit);
            let text = read(&path)?;
            let mutated = replaced(&text, edit.text, edit.replacement)?;
            broken.files.push((path.clone(), text));
            fs::write(&path, mutated).with_context(|| path.display().to_string())?;
        }
        Ok(broken)
    }

    fn path(&self, edit: &Edit) -> PathBuf {
        self.root.join(COPY).join("src").join(edit.file)
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Replaces the only occurrence of `from`. Fails if there are none or several.
fn replaced(text: &str, from: &str, to: &str) -> Result<String> {
    match text.matches(from).count() {
        1 => Ok(text.replacen(from, to, 1)),
        count => bail!("this text occurs {count} times, expected once:\n{from}"),
    }
}

fn update(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

/// Makes `target` contain exactly the files of `source`.
fn copy_directory(source: &Path, target: &Path) -> Result<()> {
    fs::create_dir_all(target).with_context(|| target.display().to_string())?;
    for entry in fs::read_dir(target)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        match (source.join(name).exists(), path.is_dir()) {
            (true, _) => {}
            (false, true) => fs::remove_dir_all(&path)?,
            (false, false) => fs::remove_file(&path)?,
        }
    }
    for entry in fs::read_dir(source)? {
        let from = entry?.path();
        let to = target.join(from.file_name().unwrap_or_default());
        match from.is_dir() {
            true => copy_directory(&from, &to)?,
            false => update(&to, &fs::read(&from)?)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutant_edit_must_match_exactly_one_place() {
        assert_eq!(replaced("a b c", "b", "x").unwrap(), "a x c");
        assert!(replaced("a b c", "d", "x").is_err());
        assert!(replaced("a b b", "b", "x").is_err());
    }
}
