//! Options of mailboxes.

use std::time::Duration;

use model::ByteSize;

options! {
    /// Mailboxes: messages that were written to an agent and are not acknowledged yet.
    mailbox, "Mailboxes";

    /// Maximum number of messages in one mailbox; a further write fails with `busy`.
    "mailbox.messages_max" => messages_max: u32 = 100_000, from "1" to "100000000";

    /// Maximum bytes in one mailbox; a further write fails with `busy`.
    "mailbox.size_max" => size_max: ByteSize = ByteSize::mebibytes(64), from "1KiB" to "1024GiB";

    /// Maximum time that a message waits; a write may set a shorter one.
    "mailbox.ttl" => ttl: Duration = Duration::from_secs(7 * 24 * 3600), from "1s" to "87600h";

    /// Time for a subscriber to acknowledge a message before it is delivered again.
    "mailbox.ack_timeout" => ack_timeout: Duration = Duration::from_secs(30), from "100ms" to "24h";

    /// Maximum number of delivered and unacknowledged messages of one mailbox.
    "mailbox.in_flight_max" => in_flight_max: u32 = 256, from "1" to "65536";

    /// Number of deliveries after which an unacknowledged message becomes a dead letter, which is
    /// delivered only after `telpher mailbox retry`; 0 is no limit.
    "mailbox.deliveries_max" => deliveries_max: u32 = 0, from "0" to "1000000000";
}
