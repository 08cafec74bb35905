//! `cargo xtask bench growth`: curves of a node's cost, as tables and plots.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::files::{RESULTS, benchmark, compress, entries, measure};

pub(super) const NAME: &str = "growth";
pub(super) const ABOUT: &str = "memory and CPU by the number of connections, topics, groups, mailboxes, \
                                conversations and buckets, and times by the length of the log";

/// Arguments of `telpher bench`, separated by blanks.
const LINE: &str = "growth --dir target --limit 25m --step-limit 6m";

/// Directory of the plots.
const IMAGES: &str = "docs/images";

/// Measures all curves, and stores result, tables and plots.
pub(super) fn run(commit: &str) -> Result<()> {
    let made = measure(NAME, commit, &mut benchmark(LINE))?;
    let directory = Path::new(RESULTS).join(NAME);
    fs::create_dir_all(&directory)?;
    compress(
        &made.join("results.json"),
        &directory.join("results.json.gz"),
    )?;
    let tables = fs::read_to_string(made.join("tables.md"))?;
    fs::write(directory.join("README.md"), page(&tables))?;
    for plot in entries(&made)? {
        if let (true, Some(name)) = (
            plot.extension().is_some_and(|kind| kind == "svg"),
            plot.file_name(),
        ) {
            fs::copy(&plot, Path::new(IMAGES).join(name))?;
        }
    }
    eprintln!("   {}, plots in {IMAGES}", directory.display());
    eprintln!("   docs: UPDATE_FIGURES=1 cargo test --package telpher-bench --test it published");
    Ok(())
}

fn page(tables: &str) -> String {
    format!(
        "# {NAME}\n\nOne node: {ABOUT}. Run again with `cargo xtask bench {NAME}`:\n\n```sh\ntelpher \
         bench {LINE}\n```\n\nEvery step is in `results.json.gz`, the plots are in \
         [docs/benchmarks.md](../../../docs/benchmarks.md#growth).\n\n{tables}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_page_has_command_and_tables() {
        let page = page("| items |\n");
        assert!(page.starts_with("# growth\n\nOne node: memory and CPU"));
        assert!(page.contains("\ntelpher bench growth --dir target --limit 25m --step-limit 6m\n"));
        assert!(page.ends_with("\n\n| items |\n"), "{page}");
    }
}
