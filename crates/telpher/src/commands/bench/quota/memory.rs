//! `telpher bench quota --memory`: memory per bucket.

use std::time::Duration;

use bench_quota::Matrix;
use checks::quota::{self, MemoryReport, ServerMemory};

use super::super::outcome::failure;
use super::Args;
use console::{Exit, Failure};

pub(super) fn run(
    args: &Args,
    matrix: &Matrix,
    agents: u64,
    rest: Duration,
) -> Result<(), Failure> {
    let surroundings = args.outcome.surroundings()?;
    let steps = args.outcome.steps();
    let report = quota::run(&surroundings, matrix, agents, rest, steps).map_err(failure)?;
    args.outcome.print(&report, &text(&report))?;
    match report.servers.first() {
        Some(ours) if ours.wrong > 0 => {
            let message = format!("{} of {} first takes were denied", ours.wrong, ours.agents);
            Err(Failure::new(Exit::Failed, message)
                .hint("check that no limit covers all agents together"))
        }
        _ => Ok(()),
    }
}

fn text(report: &MemoryReport) -> String {
    let mut text = format!(
        "{:<14} {:>10} {:>10} {:>12} {:>12} {:>12} {:>14} {:>14}\n",
        "server",
        "agents",
        "seconds",
        "empty MiB",
        "half MiB",
        "full MiB",
        "bytes each",
        "from empty"
    );
    for server in &report.servers {
        text += &row(server);
    }
    if let Some(server) = report.servers.first() {
        text += &format!("the name of an agent has {} bytes\n", server.name_bytes);
    }
    for name in &report.left_out {
        text += &format!("{name} was not measured: it is not in the directory --peers\n");
    }
    text
}

fn row(server: &ServerMemory) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "{:<14} {:>10} {:>10.1} {:>12.1} {:>12.1} {:>12.1} {:>14.1} {:>14.1}\n",
        server.target,
        server.agents,
        server.seconds,
        mib(server.empty_rss_bytes),
        mib(server.half_rss_bytes),
        mib(server.full_rss_bytes),
        server.bytes_each,
        server.bytes_each_from_empty
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_row_shows_memory_per_bucket() {
        let report = MemoryReport {
            servers: vec![ServerMemory {
                target: "telpher",
                agents: 1_000_000,
                name_bytes: 17,
                empty_rss_bytes: 10 << 20,
                half_rss_bytes: 70 << 20,
                full_rss_bytes: 110 << 20,
                bytes_each: 83.89,
                bytes_each_from_empty: 104.86,
                ..ServerMemory::default()
            }],
            left_out: vec!["express"],
        };
        let text = text(&report);
        assert!(
            text.contains("10.0         70.0        110.0           83.9          104.9\n"),
            "{text}"
        );
        assert!(text.contains("express was not measured"), "{text}");
    }
}
