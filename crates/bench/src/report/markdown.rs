//! The Markdown page of a result: command, machine, set-up, tables, and the meaning of its flags.

use super::common::methodology;
use super::{Detail, Section, kafka, overview, quota, store};
use crate::flags;
use crate::model::Results;

/// Renders the page with every measured figure.
#[must_use]
pub fn markdown(results: &Results) -> String {
    let mut text = format!("# {}\n\n", results.name);
    text += &format!(
        "```sh\n{}\n```\n\n{} UTC. Every repeat is in `results.json`.\n\n",
        results.environment.command, results.generated
    );
    text += "## Machine\n\n";
    let facts = results.environment.facts();
    for (name, value) in facts.iter().filter(|(name, _)| name != "Command") {
        text += &format!("- {name}: {value}\n");
    }
    let setup = &results.setup;
    text += "\n## Set-up\n\n";
    if let (Some(duration), Some(repeats)) = (&setup.duration, setup.repeats) {
        let order = match results.interleaved() {
            true => ", the cases taking turns",
            false => "",
        };
        text += &format!("- Runs: {repeats} of each case, {duration} each{order}\n");
    }
    text += &methodology(results);
    for current in [store::current, quota::current, kafka::current] {
        let tables = current(results);
        if !tables.is_empty() {
            text += &format!("\n{tables}");
        }
    }
    text += "\n## Results\n\nMeans over runs with Student's t 95 % intervals.\n";
    for section in overview(results, Detail::Full) {
        let Section {
            heading,
            table,
            notes,
        } = section;
        text += &format!("\n### {heading}\n\n{}", table.markdown());
        if !notes.is_empty() {
            text += "\n";
        }
        for note in notes {
            text += &format!("- {note}\n");
        }
    }
    let raised = flags::kinds(results);
    if !raised.is_empty() {
        text += "\n## Flags\n\n";
        for flag in raised {
            text += &format!("- `{flag}`: {}\n", flag.meaning());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_command_commit_machine_and_every_section() {
        let mut results = crate::fixture::results();
        results.environment.commit = Some("abc123".to_owned());
        let page = markdown(&results);
        for expected in [
            "```sh\ntelpher bench agent",
            "- Commit: abc123\n",
            "- Kernel: 6.12.0\n",
            "- Runs: 25 of each case, 1s each\n",
            "\n### agent · request-reply",
            "\n### capacity",
            "\n### ratios",
            "\n- `pacing-limited`: ",
        ] {
            assert!(page.contains(expected), "{expected} is missing:\n{page}");
        }
    }
}
