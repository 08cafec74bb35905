//! What waits for agents.

use std::time::Duration;

use model::ByteSize;

options! {
    /// Mailboxes: what was written to an agent and is not acknowledged yet.
    mailbox, "Mailboxes";

    /// Messages that wait in one mailbox; one more is refused as `busy`.
    "mailbox.messages_max" => messages_max: u32 = 100_000, from "1" to "100000000";

    /// Bytes that wait in one mailbox.
    "mailbox.size_max" => size_max: ByteSize = ByteSize::mebibytes(64), from "1KiB" to "1024GiB";

    /// How long a message waits at most; a write may ask for less.
    "mailbox.ttl" => ttl: Duration = Duration::from_secs(7 * 24 * 3600), from "1s" to "87600h";

    /// How long a subscriber may take to acknowledge a message before it is handed out again.
    "mailbox.ack_timeout" => ack_timeout: Duration = Duration::from_secs(30), from "100ms" to "24h";

    /// Messages of one mailbox that are handed out at the same time.
    "mailbox.in_flight_max" => in_flight_max: u32 = 256, from "1" to "65536";

    /// Deliveries after which a message that nobody acknowledged goes out no more and is a dead
    /// letter, until it is given back; 0 for as many as it takes.
    "mailbox.deliveries_max" => deliveries_max: u32 = 0, from "0" to "1000000000";
}
