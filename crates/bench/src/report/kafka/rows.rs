//! Runs in the file formats of chronik-bench: the same columns and fields, followed by the target
//! and its `acks` setting.

use serde::Serialize;

use super::{MB, name};
use crate::measurement::Measurement;
use crate::model::{CaseResult, Results};

/// A run with the columns and fields of chronik-bench's `BenchmarkResults`.
#[derive(Debug, Serialize)]
struct Row {
    timestamp: String,
    mode: String,
    target: String,
    acks: String,
    duration: Seconds,
    total_messages: u64,
    failed_messages: u64,
    total_bytes: u64,
    throughput_msg_per_sec: f64,
    throughput_mb_per_sec: f64,
    success_rate_pct: f64,
    latency_p50_us: u64,
    latency_p90_us: u64,
    latency_p95_us: u64,
    latency_p99_us: u64,
    latency_p999_us: u64,
    latency_max_us: u64,
    message_size: u64,
    concurrency: u32,
    compression: String,
}

#[derive(Debug, Serialize)]
struct Seconds {
    secs: u64,
    nanos: u64,
}

impl Row {
    fn of(results: &Results, one: &CaseResult, measured: &Measurement) -> Self {
        let parameter = |name: &str, otherwise: &str| {
            let found = one.case.parameters.get(name);
            found.map_or(otherwise.to_owned(), Clone::clone)
        };
        let us = |quantile: f64| {
            measured
                .service
                .as_ref()
                .map_or(0, |latency| latency.quantile(quantile) / 1_000)
        };
        let failed: u64 = measured.errors.values().sum();
        let (window_s, bytes) = (
            measured.window_ns as f64 / 1e9,
            measured.streamed.map_or(0, |streamed| streamed.bytes),
        );
        let all = measured.completed + failed;
        Self {
            timestamp: results.generated.clone(),
            mode: one.case.mode.name.to_string(),
            target: name(one),
            acks: parameter("acks", ""),
            duration: Seconds {
                secs: measured.window_ns / 1_000_000_000,
                nanos: measured.window_ns % 1_000_000_000,
            },
            total_messages: measured.completed,
            failed_messages: failed,
            total_bytes: bytes,
            throughput_msg_per_sec: measured.completed as f64 / window_s,
            throughput_mb_per_sec: bytes as f64 / MB / window_s,
            success_rate_pct: 100.0 * measured.completed as f64 / all.max(1) as f64,
            latency_p50_us: us(0.5),
            latency_p90_us: us(0.9),
            latency_p95_us: us(0.95),
            latency_p99_us: us(0.99),
            latency_p999_us: us(0.999),
            latency_max_us: us(1.0),
            message_size: one.case.size,
            concurrency: one.case.clients * one.case.in_flight.unwrap_or(1),
            compression: parameter("compression", "none"),
        }
    }

    fn latencies_us(&self) -> [u64; 6] {
        [
            self.latency_p50_us,
            self.latency_p90_us,
            self.latency_p95_us,
            self.latency_p99_us,
            self.latency_p999_us,
            self.latency_max_us,
        ]
    }
}

/// Returns a row for every run that produced or consumed.
fn rows(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for one in &results.cases {
        let measured = one.runs.iter().filter_map(|run| run.measured.as_ref());
        let of_topics = measured.filter(|run| run.streamed.is_some());
        rows.extend(of_topics.map(|run| Row::of(results, one, run)));
    }
    rows
}

const CSV_HEADER: &str = "timestamp,mode,duration_secs,total_messages,failed_messages,total_bytes,\
    throughput_msg_per_sec,throughput_mb_per_sec,success_rate_pct,latency_p50_us,latency_p90_us,\
    latency_p95_us,latency_p99_us,latency_p999_us,latency_max_us,latency_p50_ms,latency_p90_ms,\
    latency_p95_ms,latency_p99_ms,latency_p999_ms,latency_max_ms,message_size,concurrency,compression,\
    target,acks";

/// Renders a CSV line per run: chronik-bench's columns, then `target` and `acks`.
#[must_use]
pub fn csv(results: &Results) -> String {
    let mut text = format!("{CSV_HEADER}\n");
    for row in rows(results) {
        let us = row.latencies_us().map(|us| us.to_string()).join(",");
        let ms = row
            .latencies_us()
            .map(|us| format!("{:.3}", us as f64 / 1e3))
            .join(",");
        let seconds = row.duration.secs as f64 + row.duration.nanos as f64 / 1e9;
        text += &format!(
            "{},{},{seconds:.3},{},{},{},{:.2},{:.2},{:.2},{us},{ms},{},{},{},\"{}\",{}\n",
            row.timestamp,
            row.mode,
            row.total_messages,
            row.failed_messages,
            row.total_bytes,
            row.throughput_msg_per_sec,
            row.throughput_mb_per_sec,
            row.success_rate_pct,
            row.message_size,
            row.concurrency,
            row.compression,
            row.target,
            row.acks,
        );
    }
    text
}

/// Renders a JSON object per run: chronik-bench's fields, then `target` and `acks`.
///
/// # Errors
/// Never: the fields are numbers and texts.
pub fn json(results: &Results) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&rows(results))? + "\n")
}
