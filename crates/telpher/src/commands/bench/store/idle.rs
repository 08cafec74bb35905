//! `telpher bench store --idle`.

use bench::workload::store::idle::{self, Idle, IdleReport};

use super::super::outcome::failure;
use super::Args;
use crate::failure::{Exit, Failure};
use crate::output;

pub(super) fn run(args: &Args, conversations: u64) -> Result<(), Failure> {
    let matrix = args.matrix();
    let what = Idle {
        conversations,
        messages: args.idle_messages,
        size: args.size as usize,
        rest: args.idle_rest,
        door: matrix.doors[0],
        directory: args.dir.clone(),
    };
    let surroundings = args.outcome.surroundings()?;
    let is_quiet = args.outcome.is_quiet();
    let report = idle::run(&surroundings, &what, |step| {
        if !is_quiet {
            output::note(step);
        }
    });
    let report = report.map_err(failure)?;
    let value = serde_json::to_value(&report).map_err(failure)?;
    output::print(args.outcome.format(), &value, &text(&report))?;
    match report.wrong {
        0 => Ok(()),
        wrong => Err(Failure::new(
            Exit::Failed,
            format!(
                "{wrong} of {} conversations are not as they were made",
                report.read_back
            ),
        )
        .hint("`telpher inspect` says whether the journal is whole")),
    }
}

fn text(report: &IdleReport) -> String {
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
    let rows = [
        ("conversations", report.conversations.to_string(), "made"),
        ("messages", report.messages.to_string(), "in each"),
        ("made in", format!("{:.1}", report.make_seconds), "s"),
        ("disk", mib(report.disk_bytes), "MiB"),
        (
            "empty",
            mib(report.empty_rss_bytes),
            "MiB of memory of a node that holds nothing",
        ),
        (
            "half",
            mib(report.half_rss_bytes),
            "MiB once half of them were made and left alone",
        ),
        (
            "idle",
            mib(report.idle_rss_bytes),
            "MiB once all of them were",
        ),
        (
            "each",
            format!("{:.1}", report.idle_bytes_each),
            "bytes, from half of them to all",
        ),
        (
            "each",
            format!("{:.1}", report.idle_bytes_each_from_empty),
            "bytes, from the empty node to all of them",
        ),
        (
            "cold start",
            report.cold_start_ms.to_string(),
            "ms until the node is ready",
        ),
        ("cold", mib(report.cold_rss_bytes), "MiB of memory then"),
        (
            "each",
            format!("{:.1}", report.cold_bytes_each_from_empty),
            "bytes, from the empty node to all of them",
        ),
        ("read back", report.read_back.to_string(), "conversations"),
        (
            "wrong",
            report.wrong.to_string(),
            "of those, not as they were made",
        ),
    ];
    let line =
        |(name, figure, words): (&str, String, &str)| format!("{name:<14} {figure:>12}  {words}\n");
    rows.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_memory_for_each_and_the_start() {
        let report = IdleReport {
            cold_start_ms: 812,
            idle_bytes_each: 99.25,
            ..IdleReport::default()
        };
        let text = text(&report);
        assert!(
            text.contains("cold start              812  ms until"),
            "{text}"
        );
        assert!(
            text.contains("each                   99.2  bytes, from half"),
            "{text}"
        );
    }
}
