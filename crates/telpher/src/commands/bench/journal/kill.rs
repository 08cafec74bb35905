//! `telpher bench journal --kill-9-check`: appends survive kills of the node.

use checks::journal::kill::{self, KillCheck, KillReport};
use checks::kill::Kills;

use super::super::kill::{Report, run_check};
use super::super::outcome::Count;
use super::Args;
use console::Failure;

/// Enough writers that every sync serves several appends.
const CONNECTIONS: u32 = 4;
const WRITERS_PER_CONNECTION: u32 = 16;

pub(super) fn run(args: &Args, kills: Kills) -> Result<(), Failure> {
    let check = KillCheck {
        kills,
        connections: CONNECTIONS,
        writers_per_connection: WRITERS_PER_CONNECTION,
        size: args.size.first().copied().unwrap_or(256) as usize,
    };
    run_check(&args.outcome, &check.kills, |surroundings, progress| {
        kill::run(surroundings, &check, progress)
    })
}

impl Report for KillReport {
    fn is_clean(&self) -> bool {
        KillReport::is_clean(self)
    }

    fn rows(&self) -> Vec<Count> {
        vec![
            ("kills", self.kills.into(), ""),
            ("acked", self.acked, "appends acknowledged"),
            (
                "unconfirmed",
                self.unconfirmed,
                "appends that the node did not answer before it was killed",
            ),
            (
                "kept",
                self.kept_unconfirmed,
                "unconfirmed appends that are stored",
            ),
            ("lost", self.violations.lost, "acknowledged and not stored"),
            (
                "duplicated",
                self.violations.duplicated,
                "stored more than once",
            ),
            (
                "reordered",
                self.violations.reordered,
                "stored after a later append of the same writer",
            ),
            (
                "reused",
                self.violations.reused,
                "offsets acknowledged for two records",
            ),
            (
                "foreign",
                self.violations.foreign,
                "stored records that were never sent in this form",
            ),
            ("start", self.start_ms_max, "ms, the longest start"),
            ("seed", self.seed, ""),
        ]
    }
}

#[cfg(test)]
mod tests {
    use checks::kill::Violations;

    use super::super::super::outcome::count_table;
    use super::*;

    #[test]
    fn a_report_names_every_count() {
        let report = KillReport {
            kills: 3,
            violations: Violations {
                lost: 2,
                ..Violations::default()
            },
            ..KillReport::default()
        };
        let text = count_table(&report.rows());
        assert!(text.starts_with("kills                   3\n"), "{text}");
        assert!(
            text.contains("lost                    2  acknowledged and not stored\n"),
            "{text}"
        );
        assert!(!report.is_clean());
    }
}
