//! `telpher bench journal --restart`: duration and memory of a start.

use checks::journal::restart::{self, Restart, RestartReport};

use super::super::outcome::{count_table, failure};
use super::Args;
use console::Failure;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let restart = Restart {
        streams: args.streams,
        records: args.records,
        size: args.size.first().copied().unwrap_or(256),
        directory: args.dir.clone(),
    };
    let report = restart::run(&args.outcome.surroundings()?, &restart).map_err(failure)?;
    args.outcome.print(&report, &text(&report))
}

fn text(report: &RestartReport) -> String {
    let RestartReport { unfiled, filed, .. } = report;
    let rows = [
        ("streams", report.streams, ""),
        ("records", report.records, "in each"),
        ("size", report.size, "bytes of a record"),
        (
            "log",
            report.line_bytes >> 20,
            "MiB, unfiled at the first start",
        ),
        ("start", unfiled.start_ms, "ms with all records unfiled"),
        (
            "memory",
            unfiled.memory_bytes_per_stream,
            "bytes per unfiled stream",
        ),
        ("start", filed.start_ms, "ms with all records filed"),
        (
            "memory",
            filed.memory_bytes_per_stream,
            "bytes per filed stream",
        ),
        ("files", report.files, ""),
    ];
    count_table(&rows)
}

#[cfg(test)]
mod tests {
    use checks::journal::restart::Start;

    use super::*;

    #[test]
    fn restart_report_shows_the_unfiled_and_the_filed_start() {
        let start = |start_ms| Start {
            start_ms,
            memory_bytes: 1000,
            memory_bytes_per_stream: 100,
        };
        let text = text(&RestartReport {
            streams: 10,
            records: 3,
            size: 16,
            line_bytes: 5 << 20,
            unfiled: start(8),
            filed: start(2),
            files: 7,
        });
        assert!(
            text.contains("log                     5  MiB, unfiled at the first start\n"),
            "{text}"
        );
        assert!(
            text.contains("start                   8  ms with all records unfiled\n"),
            "{text}"
        );
        assert!(
            text.contains("start                   2  ms with all records filed\n"),
            "{text}"
        );
    }
}
