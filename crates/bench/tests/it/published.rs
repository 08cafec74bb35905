//! The tables of `docs/benchmarks.md` and of the README, made from the committed results in
//! `bench/results`.
//!
//! A table stands between `<!-- figures: NAME -->` and `<!-- end of figures -->`. The test fails if
//! one is not what the results say; with `UPDATE_FIGURES=1` it writes them.

mod growth;
mod table;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use table::Committed;

#[test]
fn the_tables_of_the_pages_are_those_of_the_results() {
    let mut committed = Committed::default();
    let pages = [
        ("docs/benchmarks.md", tables::of_benchmarks()),
        ("README.md", vec![tables::overview()]),
    ];
    for (name, tables) in pages {
        let page = root().join(name);
        let text = fs::read_to_string(&page).unwrap();
        let mut sections: Vec<_> = tables
            .iter()
            .map(|table| (table.name, table.render(&mut committed)))
            .collect();
        if name == "docs/benchmarks.md" {
            sections.push(("growth", growth::section()));
        }
        let made = fill(&text, &sections);
        if std::env::var_os("UPDATE_FIGURES").is_some() {
            fs::write(&page, &made).unwrap();
            continue;
        }
        let stale = text.lines().zip(made.lines()).find(|(old, new)| old != new);
        assert!(
            text == made,
            "{name} differs from bench/results: {stale:?}\nhint: UPDATE_FIGURES=1 cargo test \
             --package telpher-bench --test it published"
        );
    }
}

/// Replaces the marked sections of a page.
fn fill(page: &str, sections: &[(&str, String)]) -> String {
    let mut text = page.to_owned();
    for (name, made) in sections {
        let begin = format!("<!-- figures: {name} -->\n");
        let start = text.find(&begin).map(|at| at + begin.len());
        let start = start.unwrap_or_else(|| panic!("no section `{name}` in the page"));
        let end = start + text[start..].find("<!-- end of figures -->").unwrap();
        text.replace_range(start..end, &format!("\n{made}\n"));
    }
    let marked = text.matches("<!-- figures: ").count();
    assert_eq!(marked, sections.len(), "a marked section is unknown");
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
