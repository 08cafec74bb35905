//! `telpher bench store --kill-9-check`.

use bench::clock::now_ns;
use bench::workload::store::kill::{self, KillCheck, KillReport};

use super::super::outcome::failure;
use super::Args;
use crate::failure::{Exit, Failure};
use crate::output;

/// Enough that every sync serves several.
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
    let is_quiet = args.outcome.is_quiet();
    let report = kill::run(&surroundings, &check, |done| {
        if !is_quiet && (done % 10 == 0 || done == kills) {
            output::note(&format!("killed {done} times of {kills}"));
        }
    });
    let report = report.map_err(|error| failure(error).hint(format!("the seed was {seed}")))?;
    let value = serde_json::to_value(&report).map_err(failure)?;
    output::print(args.outcome.format(), &value, &text(&report))?;
    match report.is_clean() {
        true => Ok(()),
        false => Err(
            Failure::new(Exit::Failed, "what was acknowledged is not what is there").hint(format!(
                "the moments of the kills are those of --seed {seed}"
            )),
        ),
    }
}

fn text(report: &KillReport) -> String {
    let rows = [
        ("kills", report.kills.into(), ""),
        ("acked", report.acked, "messages acknowledged"),
        (
            "unconfirmed",
            report.unconfirmed,
            "the node was gone before their answer",
        ),
        ("kept", report.kept_unconfirmed, "of those, were there"),
        (
            "retried",
            report.retried,
            "batches sent again after a restart",
        ),
        (
            "otherwise",
            report.answered_otherwise,
            "of those acknowledged before, answered otherwise than then",
        ),
        ("lost", report.lost, "acknowledged and not there"),
        ("duplicated", report.duplicated, "there more than once"),
        (
            "reordered",
            report.reordered,
            "behind a later one of the same writer",
        ),
        ("gaps", report.gaps, "numbers left out"),
        (
            "reused",
            report.reused,
            "numbers acknowledged for two messages",
        ),
        ("torn", report.torn, "batches of which a part was there"),
        (
            "foreign",
            report.foreign,
            "never sent, or not as they were sent",
        ),
        ("refused", report.refused, "batches refused"),
        ("start", report.start_ms_max, "ms took the longest start"),
        ("seed", report.seed, ""),
    ];
    let line = |(name, count, words): (&str, u64, &str)| {
        format!("{name:<12} {count:>12}  {words}")
            .trim_end()
            .to_owned()
            + "\n"
    };
    rows.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_every_count() {
        let report = KillReport {
            kills: 3,
            gaps: 2,
            ..KillReport::default()
        };
        let text = text(&report);
        assert!(text.starts_with("kills                   3\n"), "{text}");
        assert!(
            text.contains("gaps                    2  numbers left out\n"),
            "{text}"
        );
        assert!(!report.is_clean());
    }
}
