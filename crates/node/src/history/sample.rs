//! A sample: the numbers of one interval, and the state at its end.

use model::ErrorCode;
use platform::Counter;
use store::Health;

use super::CODES;
use super::latency::{BUCKETS, bound_ns, quantile_ms};
use crate::node::Node;

macro_rules! series {
    ($($(#[doc = $doc:literal])+ $name:ident => $text:literal;)+) => {
        /// A series of numbers over time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Series {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Series {
            /// Every series.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the name in documents.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// Returns the help text.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

series! {
    /// Calls of agents accepted, per second.
    Requests => "requests";
    /// One-way messages accepted, per second.
    Sends => "sends";
    /// Writes to mailboxes accepted, per second.
    Writes => "writes";
    /// Messages of mailboxes handed to subscribers, per second.
    Deliveries => "deliveries";
    /// Messages appended to conversations, per second.
    Messages => "messages";
    /// Records written to the write-ahead log, per second: those of topics, streams, mailboxes,
    /// conversations and quotas.
    Records => "records";
    /// Bytes written to the write-ahead log, per second.
    RecordBytes => "record_bytes";
    /// Takes decided by quotas, per second.
    Takes => "takes";
    /// Takes denied by quotas or by a halt, per second.
    Denied => "denied";
    /// HTTP requests, per second; without those that ask to wait.
    HttpRequests => "http_requests";
    /// Failures answered, per second, over all codes.
    Failures => "failures";
    /// Copies dropped because their subscriber was full, per second.
    Dropped => "dropped";
    /// Syncs of the write-ahead log, per second.
    Syncs => "syncs";
    /// Median time to the head of the answer of an HTTP request, in milliseconds.
    HttpP50 => "http_p50_ms";
    /// 99th percentile of the time to the head of the answer of an HTTP request, in milliseconds.
    HttpP99 => "http_p99_ms";
    /// Median duration of a sync of the write-ahead log, in milliseconds.
    SyncP50 => "sync_p50_ms";
    /// 99th percentile of the duration of a sync of the write-ahead log, in milliseconds.
    SyncP99 => "sync_p99_ms";
    /// Processor time used, in cores.
    Cores => "cores";
    /// Resident memory of the process, in bytes.
    MemoryBytes => "memory_bytes";
    /// Open connections of clients.
    Connections => "connections";
    /// Calls that wait for an answer.
    PendingCalls => "pending_calls";
    /// Bytes that wait for the disk.
    QueuedBytes => "queued_bytes";
}

const SERIES: usize = Series::ALL.len();

/// Memory and processor time of the node's process, as the operating system reports them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessReading {
    /// Resident memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time since the start, in seconds.
    pub processor_s: Option<f64>,
}

/// The numbers of one interval, and the state at its end.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The end of the interval, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    values: [Option<f32>; SERIES],
    failures: [f32; CODES],
}

impl Sample {
    /// Returns the value of a series; `None` if there is none, such as a latency without a request.
    pub fn value(&self, series: Series) -> Option<f32> {
        self.values[series as usize]
    }

    /// Returns the failures with a code that were answered, per second.
    pub fn failures(&self, code: ErrorCode) -> f32 {
        self.failures[usize::from(code.as_u16())]
    }

    /// Returns what happened between two readings; `None` if no time has passed.
    pub(super) fn between(from: &Reading, to: &Reading) -> Option<Self> {
        let elapsed_ns = to.now_ns.checked_sub(from.now_ns).filter(|ns| *ns > 0)?;
        let seconds = elapsed_ns as f64 / 1e9;
        let rate = |from: u64, to: u64| (to.saturating_sub(from) as f64 / seconds) as f32;
        let mut sample = Self {
            unix_ms: to.unix_ms,
            values: to.gauges,
            failures: std::array::from_fn(|code| rate(from.failures[code], to.failures[code])),
        };
        for (series, count) in &to.counts {
            let before = from.counts.iter().find(|(other, _)| other == series);
            let before = before.map_or(0, |(_, count)| *count);
            sample.values[*series as usize] = Some(rate(before, *count));
        }
        let cores = from.processor_s.zip(to.processor_s);
        let cores = cores.map(|(from, to)| ((to - from).max(0.0) / seconds) as f32);
        sample.values[Series::Cores as usize] = cores;
        let http = (0..BUCKETS).map(|bucket| {
            let count = to.http[bucket].saturating_sub(from.http[bucket]);
            (Some(bound_ns(bucket)), count)
        });
        let syncs = to.syncs.iter().enumerate().map(|(bucket, (bound, count))| {
            let before = from.syncs.get(bucket).map_or(0, |(_, count)| *count);
            (*bound, count.saturating_sub(before))
        });
        for (series, quantile) in [(Series::HttpP50, 0.5), (Series::HttpP99, 0.99)] {
            sample.values[series as usize] = quantile_ms(http.clone(), quantile);
        }
        for (series, quantile) in [(Series::SyncP50, 0.5), (Series::SyncP99, 0.99)] {
            sample.values[series as usize] = quantile_ms(syncs.clone(), quantile);
        }
        Some(sample)
    }
}

/// The counters of a node at one time.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    now_ns: u64,
    unix_ms: u64,
    counts: Vec<(Series, u64)>,
    gauges: [Option<f32>; SERIES],
    failures: [u64; CODES],
    processor_s: Option<f64>,
    http: [u64; BUCKETS],
    /// Counts of syncs by the upper bound of their duration in nanoseconds.
    syncs: Vec<(Option<u64>, u64)>,
}

impl Reading {
    /// Reads the counters of a node.
    pub(super) fn take(node: &Node, process: ProcessReading, http: [u64; BUCKETS]) -> Self {
        let counters = node.counters();
        let mut failures = [0; CODES];
        for code in ErrorCode::ALL {
            failures[usize::from(code.as_u16())] = counters.failures(code);
        }
        let takes = node.quotas().take_counts();
        let denied = takes.denied + takes.halted;
        let mut counts = vec![
            (Series::Requests, counters.get(Counter::Requests)),
            (Series::Sends, counters.get(Counter::Sends)),
            (Series::Writes, counters.get(Counter::Writes)),
            (Series::Deliveries, counters.get(Counter::Deliveries)),
            (Series::Messages, counters.get(Counter::Messages)),
            (Series::Dropped, counters.get(Counter::Dropped)),
            (Series::Takes, takes.admitted + denied),
            (Series::Denied, denied),
            (Series::HttpRequests, http.iter().sum()),
            (Series::Failures, failures.iter().sum()),
        ];
        let messaging = node.messaging();
        let mut gauges = [None; SERIES];
        let mut set = |series: Series, value: f32| gauges[series as usize] = Some(value);
        set(Series::Connections, messaging.connection_count() as f32);
        set(Series::PendingCalls, messaging.pending_call_count() as f32);
        if let Some(bytes) = process.memory_bytes {
            set(Series::MemoryBytes, bytes as f32);
        }
        let mut syncs = Vec::new();
        if let Some(view) = node.health().map(Health::view) {
            counts.push((Series::Records, view.records));
            counts.push((Series::RecordBytes, view.bytes));
            counts.push((Series::Syncs, view.syncs));
            set(Series::QueuedBytes, view.queued_bytes as f32);
            syncs = view.sync_times.map(|it| it.counts).unwrap_or_default();
        }
        Self {
            now_ns: node.ports().clock.now_ns(),
            unix_ms: node.ports().clock.unix_ms(),
            counts,
            gauges,
            failures,
            processor_s: process.processor_s,
            http,
            syncs,
        }
    }
}
