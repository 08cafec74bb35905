//! The section of growth: tables and plots of the committed curves.

use std::fs;
use std::io::Read as _;

use bench::growth::Growth;
use bench::report::Table;

use super::root;

/// Returns the tables and the links to the plots. Without a committed result, the command that makes
/// one.
pub(super) fn section() -> String {
    match committed() {
        Some(growth) => render(&growth),
        None => "No result is committed: `cargo xtask bench growth` makes one.\n".to_owned(),
    }
}

fn committed() -> Option<Growth> {
    let path = root().join("bench/results/growth/results.json.gz");
    let compressed = fs::File::open(path).ok()?;
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(compressed)
        .read_to_end(&mut text)
        .unwrap();
    Some(Growth::from_json(&text).unwrap())
}

fn render(growth: &Growth) -> String {
    let plots = growth.pictures();
    let plots = plots.iter().map(|plot| {
        let caption = &plot.caption;
        format!("![{}](images/{})\n\n{caption}\n", plot.title, plot.file)
    });
    let tables = [growth.items_table(), growth.log_table()];
    let tables: Vec<_> = tables
        .iter()
        .filter(|table| !table.is_empty())
        .map(Table::markdown)
        .collect();
    let left_out = growth.left_out_list();
    let parts = tables.into_iter().chain([left_out]).chain(plots);
    let parts: Vec<_> = parts
        .map(|part| part.trim_end().to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    format!("{}\n", parts.join("\n\n"))
}

#[test]
fn plots_in_the_page_are_those_of_the_committed_curves() {
    let Some(growth) = committed() else {
        assert!(section().starts_with("No result is committed"));
        return;
    };
    for plot in growth.pictures() {
        let path = root().join("docs/images").join(&plot.file);
        let stored = fs::read_to_string(&path).unwrap();
        assert!(
            stored == plot.svg,
            "{} differs from bench/results/growth\nhint: cargo xtask bench growth",
            path.display()
        );
    }
}
