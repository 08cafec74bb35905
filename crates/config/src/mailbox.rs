//! Options of mailboxes.

use std::time::Duration;

use messaging::mailboxes::Options as Mailboxes;
use model::ByteSize;

use super::units::count;

options! {
    /// Mailboxes: messages that were written to an agent and are not acknowledged yet.
    mailbox, "Mailboxes";

    /// Maximum number of messages in one mailbox; a further write fails with `busy`.
    "mailbox.messages_max" => messages_max: u32 = count(Mailboxes::default().messages_max), from "1" to "100000000";

    /// Maximum bytes in one mailbox; a further write fails with `busy`.
    "mailbox.size_max" => size_max: ByteSize =
        ByteSize::bytes(Mailboxes::default().size_max), from "1KiB" to "1024GiB";

    /// Maximum time that a message waits; a write may set a shorter one.
    "mailbox.ttl" => ttl: Duration = Mailboxes::default().ttl, from "1s" to "87600h";

    /// Time for a subscriber to acknowledge a message before it is delivered again.
    "mailbox.ack_timeout" => ack_timeout: Duration =
        Mailboxes::default().ack_timeout, from "100ms" to "24h";

    /// Maximum number of delivered and unacknowledged messages of one mailbox.
    "mailbox.in_flight_max" => in_flight_max: u32 =
        count(Mailboxes::default().in_flight_max), from "1" to "65536";

    /// Number of deliveries after which an unacknowledged message becomes a dead letter, which is
    /// delivered only after `telpher mailbox retry`; 0 is no limit.
    "mailbox.deliveries_max" => deliveries_max: u32 =
        Mailboxes::default().deliveries_max, from "0" to "1000000000";
}
