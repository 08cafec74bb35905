//! What is derived from conversations.

use std::time::Duration;

use model::ByteSize;

options! {
    /// Views of conversations: lists, inboxes, what is over. They are derived and can be deleted
    /// while the node is down.
    views, "Views";

    /// Bytes of them that are held in memory.
    "views.cache_size" => cache_size: ByteSize = ByteSize::mebibytes(32), from "1MiB" to "64GiB";

    /// How often they catch up when nobody asks; whoever asks has them catch up at once. A
    /// conversation that is over is erased that late, and an inbox that is followed shows what is
    /// new that late.
    "views.interval" => interval: Duration = Duration::from_secs(1), from "10ms" to "1h";

    /// How often they are synced to disk: a crash throws them back that far, and they catch up again.
    "views.sync_interval" => sync_interval: Duration = Duration::from_secs(10), from "100ms" to "1h";

    /// Inboxes that are followed at the same time.
    "views.watchers_max" => watchers_max: u32 = 10_000, from "1" to "131072";
}
