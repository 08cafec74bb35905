//! Samples for the history of the node.

use node::{History, Node, ProcessReading};
use procfs::process::Process;

/// Adds a sample to the node's history every [`History::INTERVAL`], for ever.
pub(super) async fn record(node: Node) {
    loop {
        node.record_sample(read_process());
        tokio::time::sleep(History::INTERVAL).await;
    }
}

/// Reads memory and processor time of this process. What the kernel does not report is absent.
fn read_process() -> ProcessReading {
    let Ok(stat) = Process::myself().and_then(|process| process.stat()) else {
        return ProcessReading::default();
    };
    let ticks = procfs::ticks_per_second() as f64;
    ProcessReading {
        memory_bytes: Some(stat.rss.saturating_mul(procfs::page_size())),
        processor_s: Some((stat.utime + stat.stime) as f64 / ticks),
    }
}
