//! The Kafka door: topics, for any Kafka client.

use std::time::Duration;

use model::ByteSize;

use super::HostPort;

options! {
    /// The Kafka door: topics, for any Kafka client.
    kafka, "Kafka door";

    /// Address to listen on; `none` shuts the door.
    "kafka.listen" => listen: Option<HostPort> = Some(HostPort::loopback(9092));

    /// Address that clients are told to connect to; `none` is the one at which each has reached the
    /// door. Needed behind a proxy, and where TLS certificates carry a name.
    "kafka.advertised" => advertised: Option<HostPort> = None;

    /// Largest request that is accepted.
    "kafka.frame_size_max" => frame_size_max: ByteSize = ByteSize::mebibytes(100),
        from "64KiB" to "1GiB";

    /// A connection on which nothing happens for so long is closed.
    "kafka.idle_timeout" => idle_timeout: Duration = Duration::from_secs(600), from "1s" to "24h";

    /// Time that a client has to say who it is, where it has to.
    "kafka.handshake_timeout" => handshake_timeout: Duration = Duration::from_secs(10),
        from "10ms" to "5m";
}
