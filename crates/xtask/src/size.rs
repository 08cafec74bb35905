//! Size of crates: a crate that has grown beyond a limit is split before it becomes hard to live in.
//!
//! A source line is any line of a `.rs` file below `src/`, blank lines and comments included. Test
//! modules do not count: files named `tests.rs`, folders named `tests`, and a file's part from its
//! `#[cfg(test)]` module on.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::tree;

/// Maximum number of source lines of a crate.
const LINES_MAX: usize = 16_000;

/// Checks all crates below `root`; returns the problems.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for folder in tree::crates(root)? {
        let lines = lines_below(&folder.join("src"))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        problems.extend(judge(&name, lines));
    }
    Ok(problems)
}

fn judge(name: &str, lines: usize) -> Option<String> {
    (lines > LINES_MAX)
        .then(|| format!("`{name}` has {lines} source lines, {LINES_MAX} allowed: split it"))
}

/// Counts the source lines below a folder.
fn lines_below(folder: &Path) -> Result<usize> {
    let mut lines = 0;
    for path in tree::files(folder)? {
        if path.extension().is_some_and(|it| it == "rs") && !tree::is_tests(folder, &path) {
            lines += source_lines(&fs::read_to_string(&path)?);
        }
    }
    Ok(lines)
}

/// Counts the lines of a file in front of its `#[cfg(test)]` module.
fn source_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ");
    let tests = lines.windows(2).position(is_tests);
    tests.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_module_of_a_file_does_not_count() {
        let text = "//! A file.\n\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        assert_eq!(source_lines(text), 4);
        assert_eq!(source_lines("fn f() {}\n#[cfg(test)]\nfn g() {}\n"), 3);
    }

    #[test]
    fn files_of_tests_do_not_count() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let source = folder.path().join("crates/large/src");
        fs::create_dir_all(source.join("tests"))?;
        fs::write(source.join("lib.rs"), "\n".repeat(LINES_MAX))?;
        fs::write(source.join("tests.rs"), "\n")?;
        fs::write(source.join("tests/more.rs"), "\n")?;
        assert_eq!(problems(folder.path())?, Vec::<String>::new());
        fs::write(source.join("more.rs"), "\n")?;
        let found = problems(folder.path())?;
        assert_eq!(
            found,
            ["`large` has 16001 source lines, 16000 allowed: split it"]
        );
        Ok(())
    }
}
