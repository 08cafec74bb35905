//! The journal under everything durable.

use std::time::Duration;

use model::ByteSize;

options! {
    /// The journal under everything durable: what is acknowledged is in it.
    journal, "Journal";

    /// Size of one file of the journal's line; some of them lie there from the start. A node that
    /// leaves nothing behind (`--dev`) has files of 16 MiB unless a flag or a variable says else.
    "journal.segment_size" => segment_size: ByteSize = ByteSize::mebibytes(64),
        from "1MiB" to "1GiB";

    /// Shares into which streams are divided; fixed when the data directory is made.
    "journal.shards" => shards: u32 = 4, from "1" to "64";

    /// Bytes that may wait for the disk before writes are refused.
    "journal.queue_size_max" => queue_size_max: ByteSize = ByteSize::mebibytes(64),
        from "1MiB" to "16GiB";

    /// Bytes of the newest records that are kept in memory for readers.
    "journal.tail_size_max" => tail_size_max: ByteSize = ByteSize::mebibytes(32),
        from "1MiB" to "16GiB";

    /// Disk that is kept aside, so that a full disk can be told of and mended.
    "journal.reserve" => reserve: ByteSize = ByteSize::mebibytes(16), from "0B" to "16GiB";

    /// Whether to start although records that were acknowledged are damaged, and to go on without
    /// them. `telpher inspect` says which.
    "journal.accept_loss" => accept_loss: bool = false;

    /// Whether the process ends with exit status 1 when a write or a sync of the journal has failed,
    /// so that a supervisor starts it again. Without it the node goes on serving what is in memory,
    /// and refuses writes.
    "journal.exit_on_failure" => exit_on_failure: bool = true;

    /// Time between a failure of the journal and the end of the process, in which readers, health
    /// checks and metrics still see why.
    "journal.exit_delay" => exit_delay: Duration = Duration::from_secs(5);
}
