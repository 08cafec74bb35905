//! Options of views, which are derived from conversations.

use std::time::Duration;

use model::ByteSize;

options! {
    /// Views of conversations: lists, inboxes and expiry. They are derived data and can be deleted
    /// while the node is stopped.
    views, "Views";

    /// Memory for views.
    "views.cache_size" => cache_size: ByteSize = ByteSize::mebibytes(32), from "1MiB" to "64GiB";

    /// Time between two updates of the views; a request updates them at once. Expired conversations
    /// are erased, and watched inboxes are updated, with this delay.
    "views.interval" => interval: Duration = Duration::from_secs(1), from "10ms" to "1h";

    /// Time between two syncs of the views to disk. A crash sets them back this far, and they catch
    /// up.
    "views.sync_interval" => sync_interval: Duration = Duration::from_secs(10), from "100ms" to "1h";

    /// Maximum number of watched inboxes.
    "views.watchers_max" => watchers_max: u32 = 10_000, from "1" to "131072";
}
