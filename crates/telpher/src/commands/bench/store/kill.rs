//! `telpher bench store --kill-9-check`: messages survive kills of the node.

use checks::kill::Kills;
use checks::store::kill::{self, KillCheck, KillReport};

use super::super::kill::{Report, run_check};
use super::super::outcome::Count;
use super::args::Args;
use console::Failure;

/// Enough writers that every sync serves several messages.
const WRITERS: u32 = 32;

pub(super) fn run(args: &Args, kills: Kills) -> Result<(), Failure> {
    let check = KillCheck {
        kills,
        doors: args.matrix().doors,
        writers: WRITERS,
        size: args.size as usize,
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
            ("acked", self.acked, "messages acknowledged"),
            (
                "unconfirmed",
                self.unconfirmed,
                "messages that the node did not answer before it was killed",
            ),
            (
                "kept",
                self.kept_unconfirmed,
                "unconfirmed messages that are stored",
            ),
            (
                "retried",
                self.retried,
                "batches sent again after a restart",
            ),
            (
                "otherwise",
                self.answered_otherwise,
                "acknowledged batches that got another answer when sent again",
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
                "stored after a later message of the same writer",
            ),
            ("gaps", self.gaps, "sequence numbers left out"),
            (
                "reused",
                self.violations.reused,
                "sequence numbers acknowledged for two messages",
            ),
            ("torn", self.torn, "batches of which only a part is stored"),
            (
                "foreign",
                self.violations.foreign,
                "stored messages that were never sent in this form",
            ),
            ("refused", self.refused, "batches refused"),
            ("start", self.start_ms_max, "ms, the longest start"),
            ("seed", self.seed, ""),
        ]
    }
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
        let text = count_table(&report.rows());
        assert!(text.starts_with("kills                   3\n"), "{text}");
        assert!(
            text.contains("gaps                    2  sequence numbers left out\n"),
            "{text}"
        );
        assert!(!report.is_clean());
    }
}
