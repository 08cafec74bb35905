//! `telpher bench journal --kill-9-check`: appends survive kills of the node.

use bench::workload::journal::kill::{self, KillCheck, KillReport};
use meter::clock::now_ns;

use super::super::outcome::{Count, failure};
use super::Args;
use crate::failure::Failure;

/// Enough writers that every sync serves several appends.
const CONNECTIONS: u32 = 4;
const WRITERS_PER_CONNECTION: u32 = 16;

pub(super) fn run(args: &Args, kills: u32) -> Result<(), Failure> {
    let seed = args.seed.unwrap_or_else(now_ns);
    let check = KillCheck {
        kills,
        connections: CONNECTIONS,
        writers_per_connection: WRITERS_PER_CONNECTION,
        size: args.size.first().copied().unwrap_or(256) as usize,
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
        ("acked", report.acked, "appends acknowledged"),
        (
            "unconfirmed",
            report.unconfirmed,
            "appends that the node did not answer before it was killed",
        ),
        (
            "kept",
            report.kept_unconfirmed,
            "unconfirmed appends that are stored",
        ),
        ("lost", report.lost, "acknowledged and not stored"),
        ("duplicated", report.duplicated, "stored more than once"),
        (
            "reordered",
            report.reordered,
            "stored after a later append of the same writer",
        ),
        (
            "reused",
            report.reused,
            "offsets acknowledged for two records",
        ),
        (
            "foreign",
            report.foreign,
            "stored records that were never sent in this form",
        ),
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
            lost: 2,
            ..KillReport::default()
        };
        let text = count_table(&rows(&report));
        assert!(text.starts_with("kills                   3\n"), "{text}");
        assert!(
            text.contains("lost                    2  acknowledged and not stored\n"),
            "{text}"
        );
        assert!(!report.is_clean());
    }
}
