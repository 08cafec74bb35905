//! What each rule finds and what it passes over.

use super::{alarms, commits};

fn rules(name: &str, source: &str) -> Vec<(usize, &'static str)> {
    let alarms = alarms(name, source);
    alarms
        .iter()
        .map(|alarm| (alarm.line, alarm.rule))
        .collect()
}

#[test]
fn vague_words_of_pages_are_found_outside_code() {
    let page = "Whoever asks.\n\n```sh\nwhatever\n```\nA test `somebody_asks` and somebody.\n";
    assert_eq!(
        rules("README.md", page),
        [(1, "vague word"), (6, "vague word")]
    );
}

#[test]
fn long_lines_count_in_docs_outside_tables_and_links() {
    let long = "word ".repeat(30);
    let page = format!("{long}\n| {long} |\n[{long}](x.md)\n```\n{long}\n```\n");
    assert_eq!(rules("docs/a.md", &page), [(1, "long line")]);
    assert_eq!(rules("README.md", &page), []);
}

#[test]
fn openings_are_checked_for_modules_and_public_items() {
    let source = "//! What is here.\n\n/// Who asks.\npub struct Request;\n/// Who answers.\nstruct Reply;\n\
                  /// The same.\n#[derive(Debug)]\npub enum Other {}\n/// Whole records.\n/// What else.\npub fn f() {}\n";
    assert_eq!(
        rules("a.rs", source),
        [
            (1, "vague opening"),
            (3, "vague opening"),
            (7, "vague opening")
        ]
    );
}

#[test]
fn vague_type_names_are_found_with_any_visibility() {
    let source = "struct Kept;\npub(crate) enum Told { A }\npub(in crate::a) type Place = u8;\n\
                  // struct Asked\nstruct Placement;\nlet known = Known;\n";
    let found = [1, 2, 3].map(|line| (line, "vague type name"));
    assert_eq!(rules("a.rs", source), found);
}

#[test]
fn errors_end_without_a_full_stop_and_begin_small() {
    let source = "#[error(\"The disk is full\")]\n#[error(\"the disk is full.\")]\n#[error(\"TLS failed\")]\n\
                  #[error(\"Kafka said {0}\")]\n#[error(\"{0}\")]\n#[error(\"whoever asks\")]\n\
                  let hint = \"ask somebody\";\n";
    assert_eq!(
        rules("a.rs", source),
        [
            (1, "form of an error"),
            (2, "form of an error"),
            (6, "vague word"),
            (7, "vague word"),
        ]
    );
}

#[test]
fn long_subjects_are_found() {
    let log = format!("abc123 kafka: short\ndef456 {}\n", "x".repeat(73));
    assert_eq!(commits::subjects(&log).len(), 1);
}
