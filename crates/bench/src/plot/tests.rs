use super::*;
use crate::model::CaseResult;

#[test]
fn every_kind_of_plot_is_drawn_with_real_text() {
    let plots = all(&crate::fixture::results());
    for kind in [
        Kind::Throughput,
        Kind::Latency,
        Kind::Capacity,
        Kind::Cpu,
        Kind::RunOrder,
    ] {
        let plot = plots.iter().find(|plot| plot.kind == kind).unwrap();
        let svg = plot.standalone();
        assert!(svg.starts_with("<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(svg.contains("<text ") && svg.contains("<style>") && svg.ends_with("</svg>\n"));
        assert!(
            !svg.contains("NaN") && !svg.contains("inf"),
            "{}",
            plot.name
        );
        assert!(plot.caption.contains("n = "), "{}", plot.caption);
        assert!(!plot.inline().contains("<style>"));
    }
}

#[test]
fn plots_have_names_of_their_own() {
    let mut names: Vec<_> = all(&crate::fixture::results())
        .into_iter()
        .map(|plot| plot.name)
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_target_keeps_its_colour_except_in_a_single_target_panel() {
    let results = crate::fixture::results();
    let panels = panels(&results);
    for (result, class) in panels.iter().flat_map(Panel::coloured) {
        assert_eq!(colour(&results, &result.case), class);
    }
    assert_eq!(panels[1].colours, ["c0", "c1"]);
    assert_eq!(panels.last().unwrap().colours, ["c0", "c1", "c2"]);
}

#[test]
fn results_without_figures_draw_nothing() {
    let mut results = crate::fixture::results();
    results.sweeps.clear();
    for result in &mut results.cases {
        result.runs.clear();
        *result = CaseResult::of(result.case.clone(), Vec::new());
    }
    assert!(all(&results).is_empty());
}

#[test]
fn plot_labels_show_differences_and_titles_common_parameters() {
    let results = crate::fixture::results();
    let panels = panels(&results);
    assert_eq!(panels[0].title, "request-reply · 1 client · 16 B · 100/s");
    assert_eq!(panels[0].label(&panels[0].cases[1].case), "slim");
    let calls = panels.last().unwrap();
    assert_eq!(
        calls.title,
        "modes · 1 client · 128 B · unpaced · transport tcp"
    );
    assert_eq!(
        calls.label(&calls.cases[1].case),
        "concurrent · 10 in flight"
    );
}
