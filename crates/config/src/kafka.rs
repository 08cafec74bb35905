//! Options of the Kafka listener.

use std::time::Duration;

use door_kafka::Options as Listener;
use model::ByteSize;

use super::HostPort;
use super::units::size;

options! {
    /// The Kafka listener: topics, for any Kafka client.
    kafka, "Kafka listener";

    /// Address to listen on; `none` disables the listener.
    "kafka.listen" => listen: Option<HostPort> = Some(HostPort::loopback(9092));

    /// Address that Kafka clients are told to connect to (Kafka's advertised.listeners); `none` is
    /// the address to which the client has connected. Needed behind a proxy, and if the TLS
    /// certificate is for a name.
    "kafka.advertised" => advertised: Option<HostPort> = None;

    /// Maximum size of a request.
    "kafka.frame_size_max" => frame_size_max: ByteSize = size(Listener::default().frame_size_max),
        from "64KiB" to "1GiB";

    /// Time after which an idle connection is closed.
    "kafka.idle_timeout" => idle_timeout: Duration = Listener::default().idle_timeout, from "1s" to "24h";

    /// Time for a client to authenticate, if authentication is required.
    "kafka.handshake_timeout" => handshake_timeout: Duration =
        Listener::default().handshake_timeout, from "10ms" to "5m";
}
