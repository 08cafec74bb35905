use super::*;

#[test]
fn the_page_has_no_external_resources() {
    let text = page(&crate::fixture::results());
    for word in [
        "<script", "http://", "https://", "src=", "url(", "@import", "<link",
    ] {
        // The results themselves may contain addresses; the page adds none.
        let own = text.replace("tcp://127.0.0.1:7400", "");
        assert!(!own.contains(word), "{word}");
    }
}

#[test]
fn the_page_has_every_section_and_balanced_tags() {
    let text = page(&crate::fixture::results());
    for id in [
        "throughput",
        "latency",
        "capacity",
        "cpu",
        "run-order",
        "tables",
        "flags",
        "method",
        "environment",
    ] {
        assert!(text.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    let tags = [
        "section", "figure", "table", "tr", "td", "svg", "g", "math", "mrow", "mfrac", "div", "p",
        "dl", "article", "main", "html", "text", "title", "a", "h3",
    ];
    for tag in tags {
        let opened =
            text.matches(&format!("<{tag}>")).count() + text.matches(&format!("<{tag} ")).count();
        let selfclosed = text.matches(&format!("<{tag}/>")).count();
        assert_eq!(
            opened,
            text.matches(&format!("</{tag}>")).count() + selfclosed,
            "{tag}"
        );
    }
}

#[test]
fn names_from_outside_are_escaped() {
    let mut results = crate::fixture::results();
    results.name = "<b>\"x\" & y".to_owned();
    results.cases[0].case.target = "<i>".to_owned();
    let text = page(&results);
    assert!(text.contains("<h1>Telpher benchmark: &lt;b&gt;&quot;x&quot; &amp; y</h1>"));
    assert!(!text.contains("<i>\u{20}") && !text.contains("><i></b>"));
}

#[test]
fn an_empty_suite_makes_a_page() {
    let mut results = crate::fixture::results();
    results.cases.clear();
    results.sweeps.clear();
    results.comparisons.clear();
    let text = page(&results);
    assert!(text.contains("0 cases in 0 runs"));
    assert!(!text.contains("<figure>"));
}

#[test]
#[ignore = "writes the page and its plots to target/bench-pictures, to be looked at"]
fn page_and_plots_are_written_for_inspection() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench-pictures");
    std::fs::create_dir_all(directory).unwrap();
    let results = crate::fixture::results();
    std::fs::write(format!("{directory}/report.html"), page(&results)).unwrap();
    for plot in plot::all(&results) {
        std::fs::write(format!("{directory}/{}.svg", plot.name), plot.standalone()).unwrap();
    }
}
