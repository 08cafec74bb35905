//! `results.tsv`: a line per run with the 28 columns of the SLIM suite in its order, then our own.

use crate::flags;
use crate::format::{ABSENT, count, fixed};
use crate::model::{Case, Metric, Results, Run};

/// Renders all runs as tab-separated values.
#[must_use]
pub fn tsv(results: &Results) -> String {
    let heads: Vec<&str> = SUITE.iter().chain(OURS).map(|(head, _)| *head).collect();
    let mut text = heads.join("\t") + "\n";
    for result in &results.cases {
        for run in &result.runs {
            let cells = SUITE
                .iter()
                .chain(OURS)
                .map(|(_, cell)| cell(&result.case, run));
            text += &(cells.collect::<Vec<_>>().join("\t") + "\n");
        }
    }
    text
}

type Column = (&'static str, fn(&Case, &Run) -> String);

const SUITE: &[Column] = &[
    ("mode", |case, _| single_line(&case.mode.name)),
    ("clients", |case, _| case.clients.to_string()),
    ("size", |case, _| case.size.to_string()),
    ("rate", |case, _| case.rate.to_string()),
    ("repeat", |_, run| run.repeat.to_string()),
    ("sender_total_messages", |_, run| {
        count(run.metrics.get(Metric::SenderMessages))
    }),
    ("sender_mps", |_, run| {
        fixed(run.metrics.get(Metric::SenderRate))
    }),
    ("sender_mean_latency_ms", |_, run| {
        millis(run.metrics.get(Metric::LatencyMean))
    }),
    ("sender_p50_latency_ms", |_, run| {
        millis(run.metrics.get(Metric::LatencyP50))
    }),
    ("sender_p90_latency_ms", |_, run| {
        millis(run.metrics.get(Metric::LatencyP90))
    }),
    ("sender_p99_latency_ms", |_, run| {
        millis(run.metrics.get(Metric::LatencyP99))
    }),
    ("sender_max_latency_ms", |_, run| {
        millis(run.metrics.get(Metric::LatencyMax))
    }),
    ("sender_runtime_errors", |_, run| {
        count(run.metrics.get(Metric::SenderErrors))
    }),
    ("sender_duration", |_, run| {
        match run.metrics.get(Metric::SenderSeconds) {
            Some(seconds) => format!("{seconds:.6}s"),
            None => ABSENT.to_owned(),
        }
    }),
    ("sink_received_messages", |_, run| {
        count(run.metrics.get(Metric::SinkMessages))
    }),
    ("sink_errors", |_, run| {
        count(run.metrics.get(Metric::SinkErrors))
    }),
    ("sink_receive_mps", |_, run| {
        fixed(run.metrics.get(Metric::SinkRate))
    }),
    ("sink_active_receive_mps", |_, run| {
        fixed(run.metrics.get(Metric::SinkActiveRate))
    }),
    ("sink_elapsed_seconds", |_, run| {
        precise(run.metrics.get(Metric::SinkElapsed))
    }),
    ("sink_active_receive_seconds", |_, run| {
        precise(run.metrics.get(Metric::SinkActive))
    }),
    ("sender_cpu_seconds", |_, run| {
        precise(run.metrics.get(Metric::SenderCpuSeconds))
    }),
    ("sender_cpu_percent", |_, run| {
        fixed(run.metrics.get(Metric::SenderCpu))
    }),
    ("responder_cpu_seconds", |_, run| {
        precise(run.metrics.get(Metric::ResponderCpuSeconds))
    }),
    ("responder_cpu_percent", |_, run| {
        fixed(run.metrics.get(Metric::ResponderCpu))
    }),
    ("node_cpu_seconds", |_, run| {
        precise(run.metrics.get(Metric::NodeCpuSeconds))
    }),
    ("node_cpu_percent", |_, run| {
        fixed(run.metrics.get(Metric::NodeCpu))
    }),
    ("total_cpu_seconds", |_, run| {
        precise(run.metrics.get(Metric::TotalCpuSeconds))
    }),
    ("total_cpu_percent", |_, run| {
        fixed(run.metrics.get(Metric::TotalCpu))
    }),
];

const OURS: &[Column] = &[
    ("target", |case, _| single_line(&case.target)),
    ("area", |case, _| case.area.name().to_owned()),
    ("in_flight", |case, _| {
        case.in_flight
            .map_or(ABSENT.to_owned(), |depth| depth.to_string())
    }),
    ("parameters", |case, _| {
        let pairs = case
            .parameters
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        single_line(&pairs.collect::<Vec<_>>().join(";"))
    }),
    ("order", |_, run| run.order.to_string()),
    ("observed_mps", |_, run| {
        fixed(run.metrics.get(Metric::ObservedRate))
    }),
    ("steady_mps", |_, run| {
        fixed(run.metrics.get(Metric::SteadyRate))
    }),
    ("setup_ms", |_, run| fixed(run.metrics.get(Metric::Setup))),
    ("p999_latency_ms", |_, run| {
        millis(run.metrics.get(Metric::LatencyP999))
    }),
    ("p99_response_ms", |_, run| {
        millis(run.metrics.get(Metric::ResponseP99))
    }),
    ("node_cpu_us_per_message", |_, run| {
        fixed(run.metrics.get(Metric::NodeCpuPerMessage))
    }),
    ("node_rss_peak_bytes", |_, run| {
        count(run.metrics.get(Metric::NodeRssPeak))
    }),
    ("flags", |_, run| flags::list(&run.flags)),
];

/// Formats milliseconds with six decimals (nanoseconds): calls take microseconds.
fn millis(value: Option<f64>) -> String {
    precise(value)
}

fn precise(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.6}"))
}

/// Replaces separators in a word by spaces.
fn single_line(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_28_columns_are_the_suites() {
        let text = tsv(&crate::fixture::results());
        let suite = "mode clients size rate repeat sender_total_messages sender_mps \
            sender_mean_latency_ms sender_p50_latency_ms sender_p90_latency_ms \
            sender_p99_latency_ms sender_max_latency_ms sender_runtime_errors sender_duration \
            sink_received_messages sink_errors sink_receive_mps sink_active_receive_mps \
            sink_elapsed_seconds sink_active_receive_seconds sender_cpu_seconds sender_cpu_percent \
            responder_cpu_seconds responder_cpu_percent node_cpu_seconds node_cpu_percent \
            total_cpu_seconds total_cpu_percent";
        let heads: Vec<_> = text.lines().next().unwrap().split('\t').collect();
        let expected: Vec<_> = suite.split_whitespace().collect();
        assert_eq!(expected.len(), 28);
        assert_eq!(heads[..28], expected);
    }

    #[test]
    fn every_run_has_a_line_with_every_column() {
        let results = crate::fixture::results();
        let text = tsv(&results);
        let runs: usize = results.cases.iter().map(|result| result.runs.len()).sum();
        assert_eq!(text.lines().count(), runs + 1);
        assert!(
            text.lines()
                .all(|line| line.split('\t').count() == SUITE.len() + OURS.len())
        );
        let write = text.lines().find(|line| line.starts_with("write")).unwrap();
        assert_eq!(write.split('\t').nth(14), Some("n/a"));
    }
}
