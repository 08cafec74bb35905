//! `telpher bench store --idle`: memory of idle conversations, and the duration of a start.

use checks::store::idle::{self, Idle, IdleReport};

use super::super::outcome::failure;
use super::args::Args;
use console::{Exit, Failure};

pub(super) fn run(args: &Args, conversations: u64) -> Result<(), Failure> {
    let matrix = args.matrix();
    let what = Idle {
        conversations,
        messages: args.idle_messages,
        size: args.size as usize,
        rest: args.idle_rest,
        door: matrix.doors[0],
        directory: args.runs.dir.clone(),
    };
    let surroundings = args.outcome.surroundings()?;
    let report = idle::run(&surroundings, &what, args.outcome.steps()).map_err(failure)?;
    args.outcome.print(&report, &text(&report))?;
    match report.wrong {
        0 => Ok(()),
        wrong => Err(Failure::new(
            Exit::Failed,
            format!(
                "{wrong} of {} conversations differ from what was written",
                report.read_back
            ),
        )
        .hint("`telpher inspect` checks the journal")),
    }
}

fn text(report: &IdleReport) -> String {
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
    let rows = [
        ("conversations", report.conversations.to_string(), ""),
        ("messages", report.messages.to_string(), "in each"),
        ("created in", format!("{:.1}", report.make_seconds), "s"),
        ("disk", mib(report.disk_bytes), "MiB"),
        (
            "empty",
            mib(report.empty_rss_bytes),
            "MiB of memory of an empty node",
        ),
        (
            "half",
            mib(report.half_rss_bytes),
            "MiB with half of the conversations, idle",
        ),
        (
            "idle",
            mib(report.idle_rss_bytes),
            "MiB with all conversations, idle",
        ),
        (
            "each",
            format!("{:.1}", report.idle_bytes_each),
            "bytes per conversation, from half of them to all",
        ),
        (
            "each",
            format!("{:.1}", report.idle_bytes_each_from_empty),
            "bytes per conversation, from the empty node to all",
        ),
        (
            "cold start",
            report.cold_start_ms.to_string(),
            "ms until the node is ready",
        ),
        (
            "cold",
            mib(report.cold_rss_bytes),
            "MiB of memory after the start",
        ),
        (
            "each",
            format!("{:.1}", report.cold_bytes_each_from_empty),
            "bytes per conversation, from the empty node to all",
        ),
        ("read back", report.read_back.to_string(), "conversations"),
        (
            "wrong",
            report.wrong.to_string(),
            "conversations that differ from what was written",
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
    fn store_idle_report_shows_memory_per_conversation_and_cold_start() {
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
            text.contains("each                   99.2  bytes per conversation, from half"),
            "{text}"
        );
    }
}
