//! Options of the journal: the write-ahead log and the files that are made from it.

use std::time::Duration;

use journal::{AcceptLoss, Options as Journal};
use model::ByteSize;

use super::units::size;

options! {
    /// The journal stores all durable data: a write-ahead log, and files that are sorted by stream.
    journal, "Journal";

    /// Size of one segment of the write-ahead log; several are allocated at the start. With `--dev`
    /// a segment has 16 MiB unless a flag or a variable sets another size.
    "journal.segment_size" => segment_size: ByteSize =
        ByteSize::bytes(Journal::default().segment_size), from "1MiB" to "1GiB";

    /// Number of shards among which streams are divided; fixed when the data directory is created.
    "journal.shards" => shards: u32 = u32::from(Journal::default().shard_count), from "1" to "64";

    /// Maximum bytes that wait for the disk; further writes are refused.
    "journal.queue_size_max" => queue_size_max: ByteSize =
        ByteSize::bytes(Journal::default().queue_bytes_max), from "1MiB" to "16GiB";

    /// Memory for the newest records, from which readers are served.
    "journal.tail_size_max" => tail_size_max: ByteSize =
        size(Journal::default().tail_bytes_max), from "1MiB" to "16GiB";

    /// Disk space that the node keeps in reserve, so that data can be deleted when the disk is
    /// full.
    "journal.reserve" => reserve: ByteSize =
        ByteSize::bytes(Journal::default().reserve_size), from "0B" to "16GiB";

    /// Start although acknowledged records are damaged, and continue without them. `telpher
    /// inspect` lists them.
    "journal.accept_loss" => accept_loss: bool =
        Journal::default().accept_loss == AcceptLoss::Yes;

    /// Exit with status 1 when a write or a sync of the journal has failed, so that a supervisor
    /// restarts the node. If false, the node continues to serve reads and refuses writes.
    "journal.exit_on_failure" => exit_on_failure: bool = true;

    /// Time between a failure of the journal and the exit, in which health checks and metrics
    /// report the cause.
    "journal.exit_delay" => exit_delay: Duration = Duration::from_secs(5);
}
