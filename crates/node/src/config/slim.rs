//! The SLIM door: a node of SLIM's data plane, for applications that are built on it.

use std::path::PathBuf;
use std::time::Duration;

use model::{ByteSize, limits};

use super::HostPort;

mod rules;

pub use rules::{Act, Rule, Rules};

options! {
    /// The SLIM door: a node of SLIM's data plane, for applications that are built on it.
    slim, "SLIM door";

    /// Address to listen on, for gRPC and for WebSockets; `none` shuts the TCP door.
    "slim.listen" => listen: Option<HostPort> = Some(HostPort::loopback(46357));

    /// Unix socket to listen on; `none` is no socket.
    "slim.socket" => socket: Option<PathBuf> = None;

    /// File with certificates of authorities, as PEM: inside TLS the door then lets in only whoever
    /// shows a certificate of one of them.
    "slim.client_authorities" => client_authorities: Option<PathBuf> = None;

    /// File with the key of JWTs that the door lets in beside the node's tokens: a public key as PEM,
    /// or a secret of at least 32 bytes. Where there is one, nobody comes in without either.
    "slim.jwt_key" => jwt_key: Option<PathBuf> = None;

    /// Issuer that a JWT must name; `none` is any.
    "slim.jwt_issuer" => jwt_issuer: Option<String> = None;

    /// Audience that a JWT must name; `none` is any.
    "slim.jwt_audience" => jwt_audience: Option<String> = None;

    /// Who may subscribe to names and send to them, with semicolons or lines between the rules:
    /// `subscribe acme/pay billing,ops; send acme/pay *`. Those named are tokens' names and JWTs'
    /// subjects, `*` is anybody, `nobody` is nobody; the longest rule that covers a name counts, and
    /// what none covers is free.
    "slim.rules" => rules: Rules = Rules::default();

    /// Largest message that is accepted; a larger one is skipped and counted. Messages above 4 MiB
    /// are delivered over WebSockets (ws://) only: over gRPC, SLIM's library takes no larger ones.
    "slim.message_size_max" => message_size_max: ByteSize = ByteSize::mebibytes(4),
        from "1KiB" to "1GiB";

    /// Bytes that may wait for one connection that does not read before messages to it are dropped.
    "slim.queue_size_max" => queue_size_max: ByteSize = ByteSize::mebibytes(16),
        from "64KiB" to "16GiB";

    /// Subscriptions that one connection may hold.
    "slim.subscriptions_per_connection_max" => subscriptions_per_connection_max: u32 =
        limits::SUBSCRIPTIONS_PER_CONNECTION_MAX, from "1" to "1048576";

    /// Silence after which an application is asked for a sign of life; as long again without one,
    /// and it is taken for dead.
    "slim.keepalive" => keepalive: Duration = Duration::from_secs(15), from "100ms" to "1h";

    /// Time that a new connection has to negotiate its link.
    "slim.negotiation_timeout" => negotiation_timeout: Duration = Duration::from_secs(5),
        from "10ms" to "5m";
}
