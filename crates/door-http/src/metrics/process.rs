//! Metrics of the process, under the names that Prometheus' client libraries use, without a prefix.
//!
//! Source of the names: <https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>.
//! A value that the kernel does not report is omitted.

use std::fmt::Error;

use procfs::process::Process as Reading;
use procfs::{CurrentSI, WithCurrentSystemInfo};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Collector of the `process_` metrics.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let Ok(process) = Reading::myself() else {
            return Ok(());
        };
        if let Ok(stat) = process.stat() {
            encode_times(&stat, &mut encoder)?;
            let gauges = [
                (
                    "process_virtual_memory_bytes",
                    "Virtual memory size",
                    stat.vsize as f64,
                ),
                (
                    "process_resident_memory_bytes",
                    "Resident memory size",
                    stat.rss_bytes().get() as f64,
                ),
                (
                    "process_threads",
                    "Threads of the process",
                    stat.num_threads as f64,
                ),
            ];
            for (name, help, value) in gauges {
                encode_gauge(name, help, value, &mut encoder)?;
            }
        }
        if let Ok(count) = process.fd_count() {
            let help = "Open file descriptors";
            encode_gauge("process_open_fds", help, count as f64, &mut encoder)?;
        }
        if let Ok(limits) = process.limits()
            && let procfs::process::LimitValue::Value(limit) = limits.max_open_files.soft_limit
        {
            let help = "Limit of open file descriptors";
            encode_gauge("process_max_fds", help, limit as f64, &mut encoder)?;
        }
        Ok(())
    }
}

fn encode_times(
    stat: &procfs::process::Stat,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let ticks = procfs::ticks_per_second() as f64;
    let value = ConstCounter::new((stat.utime + stat.stime) as f64 / ticks);
    let help = "Processor time spent, user and system";
    let metric = encoder.encode_descriptor(
        "process_cpu",
        help,
        Some(&Unit::Seconds),
        value.metric_type(),
    )?;
    value.encode(metric)?;
    if let Ok(kernel) = procfs::KernelStats::current() {
        let help = "Start time of the process since 1970-01-01 UTC";
        let start = kernel.btime as f64 + stat.starttime as f64 / ticks;
        encode_gauge("process_start_time_seconds", help, start, encoder)?;
    }
    Ok(())
}

fn encode_gauge(
    name: &str,
    help: &str,
    value: f64,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let value = ConstGauge::new(value);
    value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)
}
