//! Live lines of `key=value` pairs: one per run, mode, sweep step and sweep.
//!
//! Each line has the keys of the SLIM suite first, in its order and number format, so that parsers
//! of its logs can read ours; then our own keys. A figure that was not measured is `n/a`. Lines are
//! made from runs and summaries and compute nothing that a table would not show.

mod parse;

use std::fmt::Write;

use crate::flags;
use crate::format::fixed;
use crate::model::{Case, CaseResult, Metric, Run, SweepResult, SweepStep};
use crate::stats;
pub use parse::parse_result;

const LATENCIES: [Metric; 3] = [Metric::LatencyMean, Metric::LatencyP50, Metric::LatencyP99];

/// Formats one run as `BENCHMARK_RESULT`.
#[must_use]
pub fn benchmark_result(case: &Case, run: &Run) -> String {
    let mut line = Line::new("BENCHMARK_RESULT");
    line.case(case)
        .put("rate", case.rate)
        .put("repeat", run.repeat);
    let metric = |metric| fixed(run.metrics.get(metric));
    line.put("sender_mps", metric(Metric::SenderRate));
    line.put("observed_mps", metric(Metric::ObservedRate));
    line.put("sink_mps", metric(Metric::SinkRate));
    line.put("sink_active_mps", metric(Metric::SinkActiveRate));
    line.put(
        "sender_errors",
        crate::format::count(run.metrics.get(Metric::SenderErrors)),
    );
    line.put(
        "sink_errors",
        crate::format::count(run.metrics.get(Metric::SinkErrors)),
    );
    line.put("node_cpu", metric(Metric::NodeCpu));
    line.put("total_cpu", metric(Metric::TotalCpu));
    if case.mode.answered {
        for latency in LATENCIES {
            line.put(latency.key(), metric(latency));
        }
    }
    line.ours(case)
        .put("steady_mps", metric(Metric::SteadyRate));
    line.put_measured("setup_ms", run.metrics.get(Metric::Setup));
    for (key, latency) in [
        ("p50_us", Metric::LatencyP50),
        ("p99_us", Metric::LatencyP99),
        ("p999_us", Metric::LatencyP999),
        ("p99_response_us", Metric::ResponseP99),
    ] {
        line.put_measured(key, run.metrics.get(latency).map(|ms| ms * 1e3));
    }
    line.put_measured(
        "node_cpu_us_per_message",
        run.metrics.get(Metric::NodeCpuPerMessage),
    );
    line.put("flags", flags::list(&run.flags)).end()
}

/// Formats all runs of the cases of one mode and target as `MODE_SUMMARY`. `None` without cases.
#[must_use]
pub fn mode_summary(cases: &[&CaseResult]) -> Option<String> {
    let case = &cases.first()?.case;
    let runs: Vec<&Run> = cases.iter().flat_map(|result| &result.runs).collect();
    let mean = |metric: Metric| {
        let values: Vec<_> = runs
            .iter()
            .filter_map(|run| run.metrics.get(metric))
            .collect();
        fixed(stats::describe(&values).map(|description| description.mean))
    };
    let mut line = Line::new("MODE_SUMMARY");
    line.put("mode", &case.mode.name)
        .put("runs", runs.len())
        .put("cases", cases.len());
    if case.mode.answered {
        for latency in LATENCIES {
            line.put(latency.key(), mean(latency));
        }
    } else {
        line.put("sender_mean_mps", mean(Metric::SenderRate));
        line.put("observed_mean_mps", mean(Metric::ObservedRate));
    }
    line.put("node_cpu", mean(Metric::NodeCpu))
        .put("total_cpu", mean(Metric::TotalCpu));
    line.put(
        "total_errors",
        runs.iter().map(|run| run.error_count()).sum::<u64>(),
    );
    if case.mode.answered {
        line.put("sender_mean_mps", mean(Metric::SenderRate));
        line.put("observed_mean_mps", mean(Metric::ObservedRate));
    }
    let mut raised: Vec<_> = cases
        .iter()
        .flat_map(|result| &result.summary.flags)
        .cloned()
        .collect();
    raised.sort_by_key(|raised| raised.flag);
    raised.dedup_by_key(|raised| raised.flag);
    line.put("target", &case.target)
        .put("area", case.area.name());
    Some(line.put("flags", flags::list(&raised)).end())
}

/// Formats one step of a sweep as `CAPACITY_SWEEP_STEP`.
#[must_use]
pub fn sweep_step(case: &Case, step: &SweepStep) -> String {
    let mean = |metric| fixed(step.summary.mean(metric));
    let mut line = Line::new("CAPACITY_SWEEP_STEP");
    line.case(case)
        .put("phase", step.phase.name())
        .put("step", step.step);
    line.put("rate", step.rate).put("repeats", step.runs.len());
    line.put("sender_mean_mps", mean(Metric::SenderRate));
    line.put("observed_mean_mps", mean(Metric::ObservedRate));
    line.put("observed_gain_percent", fixed(step.gain_percent));
    line.put("node_cpu", mean(Metric::NodeCpu))
        .put("total_cpu", mean(Metric::TotalCpu));
    line.put("total_errors", step.error_count())
        .put("improved", step.improved);
    line.ours(case)
        .put("flags", flags::list(&step.summary.flags))
        .end()
}

/// Formats the capacity that a sweep found as `CAPACITY_CASE_SUMMARY`. `None` if it has found none.
#[must_use]
pub fn capacity(sweep: &SweepResult) -> Option<String> {
    let (best, found) = (sweep.best()?, sweep.outcome.as_ref()?);
    let mean = |metric| fixed(best.summary.mean(metric));
    let mut line = Line::new("CAPACITY_CASE_SUMMARY");
    line.case(&sweep.case)
        .put("best_offered_rate", found.best_rate);
    line.put("capacity_rate_lower", found.rate_lower);
    let upper = found.rate_upper.map(|upper| upper.to_string());
    line.put(
        "capacity_rate_upper",
        upper.unwrap_or_else(|| crate::format::ABSENT.to_owned()),
    );
    line.put("best_effective_throughput_mps", mean(Metric::ObservedRate));
    line.put("best_sender_completed_mps", mean(Metric::SenderRate));
    line.put("best_node_cpu", mean(Metric::NodeCpu));
    line.put("best_total_cpu", mean(Metric::TotalCpu));
    line.put("steps", sweep.steps.len())
        .put("stop_reason", format!("{:?}", found.stop_reason));
    Some(line.ours(&sweep.case).end())
}

struct Line(String);

impl Line {
    fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    fn put(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {key}={value}");
        self
    }

    /// Adds one of our own figures with two decimals, if it was measured.
    fn put_measured(&mut self, key: &str, value: Option<f64>) -> &mut Self {
        match value {
            Some(value) => self.put(key, fixed(Some(value))),
            None => self,
        }
    }

    fn case(&mut self, case: &Case) -> &mut Self {
        self.put("mode", &case.mode.name)
            .put("clients", case.clients)
            .put("size", case.size)
    }

    /// Adds the keys that distinguish our cases beyond the suite's keys.
    fn ours(&mut self, case: &Case) -> &mut Self {
        let word = |text: &str| text.replace(char::is_whitespace, "_");
        self.put("target", word(&case.target))
            .put("area", case.area.name());
        if let Some(in_flight) = case.in_flight {
            self.put("in_flight", in_flight);
        }
        for (key, value) in &case.parameters {
            self.put(&word(key), word(value));
        }
        self
    }

    fn end(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::model::{Area, Metrics, Mode};

    #[test]
    fn live_lines_match_the_snapshot() {
        let results = fixture::results();
        let mut lines = Vec::new();
        for result in &results.cases {
            lines.push(benchmark_result(&result.case, &result.runs[0]));
            lines.push(mode_summary(&[result]).unwrap());
        }
        for sweep in &results.sweeps {
            lines.push(sweep_step(&sweep.case, &sweep.steps[0]));
            lines.push(sweep_step(&sweep.case, &sweep.steps[1]));
            lines.push(capacity(sweep).unwrap());
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_run_without_figures_prints_n_a_for_each() {
        let case = Case::new("two words", Area::Agent, Mode::REQUEST_REPLY);
        let line = benchmark_result(&case, &Run::reported(1, 1, Metrics::new()));
        assert_eq!(line.matches("=n/a").count(), 12, "{line}");
        assert!(line.contains(" target=two_words "), "{line}");
    }

    #[test]
    fn benchmark_result_line_parses_back() {
        for result in &fixture::results().cases {
            let line = benchmark_result(&result.case, &result.runs[1]);
            let (case, run) = parse_result(&line, "other").unwrap();
            assert_eq!(case.key(), result.case.key());
            assert_eq!(run.repeat, 2);
            let rate = |run: &Run| fixed(run.metrics.get(Metric::ObservedRate));
            assert_eq!(rate(&run), rate(&result.runs[1]));
        }
        assert_eq!(parse_result("MODE_SUMMARY mode=write", "x"), None);
        assert_eq!(parse_result("BENCHMARK_RESULT mode=write", "x"), None);
    }
}
