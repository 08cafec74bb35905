//! `telpher bench store --kill-9-check`: messages survive kills of the node.

use bench::workload::store::kill::{self, KillCheck, KillReport};
use meter::clock::now_ns;

use super::super::outcome::{Count, failure};
use super::args::Args;
use crate::failure::Failure;

/// Enough writers that every sync serves several messages.
const WRITERS: u32 = 32;

pub(super) fn run(args: &Args, kills: u32) -> Result<(), Failure> {
    let seed = args.seed.unwrap_or_else(now_ns);
    let check = KillCheck {
        kills,
        doors: args.matrix().doors,
        writers: WRITERS,
        size: args.size as usize,
        seed,
        directory: args.dir.clone(),
    };
    let surroundings = args.outcome.surroundings()?;
    let report = kill::run(&surroundings, &check, |done| {
        args.outcome.killed(done, kills)
    });
    let report = report.map_err(|error| failure(error).hint(format!("the seed was {seed}")))?;
    let rows = rows(&report);
    args.outcome.judged(&report, &rows, report.is_clean(), seed)
}

fn rows(report: &KillReport) -> Vec<Count> {
    vec![
        ("kills", report.kills.into(), ""),
        ("acked", report.acked, "messages acknowledged"),
        (
            "unconfirmed",
            report.unconfirmed,
            "messages that the node did not answer before it was killed",
        ),
        (
            "kept",
            report.kept_unconfirmed,
            "unconfirmed messages that are stored",
        ),
        (
            "retried",
            report.retried,
            "batches sent again after a restart",
        ),
        (
            "otherwise",
            report.answered_otherwise,
            "acknowledged batches that got another answer when sent again",
        ),
        ("lost", report.lost, "acknowledged and not stored"),
        ("duplicated", report.duplicated, "stored more than once"),
        (
            "reordered",
            report.reordered,
            "stored after a later message of the same writer",
        ),
        ("gaps", report.gaps, "sequence numbers left out"),
        (
            "reused",
            report.reused,
            "sequence numbers acknowledged for two messages",
        ),
        (
            "torn",
            report.torn,
            "batches of which only a part is stored",
        ),
        (
            "foreign",
            report.foreign,
            "stored messages that were never sent in this form",
        ),
        ("refused", report.refused, "batches refused"),
        ("start", report.start_ms_max, "ms, the longest start"),
        ("seed", report.seed, ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::outcome::count_table;
    use super::*;

    #[test]
    fn a_report_names_every_count() {
        let report = KillReport {
            kills: 3,
            gaps: 2,
            ..KillReport::default()
        };
        let text = count_table(&rows(&report));
        assert!(text.starts_with("kills                   3\n"), "{text}");
        assert!(
            text.contains("gaps                    2  sequence numbers left out\n"),
            "{text}"
        );
        assert!(!report.is_clean());
    }
}
