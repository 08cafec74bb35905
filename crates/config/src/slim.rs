//! Options of the SLIM listener.

use std::path::PathBuf;
use std::time::Duration;

use door_slim::Options as Listener;
use model::ByteSize;

use super::HostPort;
use super::units::{count, size};

mod rules;

pub use rules::{Act, Rule, Rules};

options! {
    /// The SLIM listener: a node of the SLIM data plane, for SLIM applications.
    slim, "SLIM listener";

    /// TCP address to listen on, for gRPC and WebSockets; `none` disables it.
    "slim.listen" => listen: Option<HostPort> = Some(HostPort::loopback(46357));

    /// Unix socket to listen on; `none` disables it.
    "slim.socket" => socket: Option<PathBuf> = None;

    /// PEM file with certificates of authorities. If set, clients must present a certificate that
    /// one of them issued; needs TLS.
    "slim.client_authorities" => client_authorities: Option<PathBuf> = None;

    /// File with the key of the JWTs that are accepted in addition to the node's tokens: a public
    /// key (PEM), or a secret of at least 32 bytes. If set, every client needs a JWT or a token.
    "slim.jwt_key" => jwt_key: Option<PathBuf> = None;

    /// Issuer that a JWT must have; `none` accepts any.
    "slim.jwt_issuer" => jwt_issuer: Option<String> = None;

    /// Audience that a JWT must have; `none` accepts any.
    "slim.jwt_audience" => jwt_audience: Option<String> = None;

    /// Rules for subscribing to names and sending to them, separated by semicolons or line breaks:
    /// `subscribe acme/pay billing,ops; send acme/pay *`. Each lists names of tokens or subjects of
    /// JWTs; `*` allows every client, `nobody` allows none. The longest rule that covers a name
    /// applies; names without a rule are open to every client.
    "slim.rules" => rules: Rules = Rules::default();

    /// Maximum size of a message; a larger one is skipped and counted. Messages above 4 MiB are
    /// delivered over WebSockets (ws://) only, because SLIM's library refuses them over gRPC.
    "slim.message_size_max" => message_size_max: ByteSize =
        ByteSize::bytes(u64::from(Listener::default().message_size_max)), from "1KiB" to "1GiB";

    /// Bytes that wait for a connection that does not read, before messages to it are dropped.
    "slim.queue_size_max" => queue_size_max: ByteSize =
        size(Listener::default().queue_size_max), from "64KiB" to "16GiB";

    /// Maximum number of subscriptions per connection.
    "slim.subscriptions_per_connection_max" => subscriptions_per_connection_max: u32 =
        count(Listener::default().subscriptions_max), from "1" to "1048576";

    /// Time of silence after which an application is pinged; after twice this time it is
    /// disconnected.
    "slim.keepalive" => keepalive: Duration = Listener::default().keepalive, from "100ms" to "1h";

    /// Time for a new connection to negotiate its link.
    "slim.negotiation_timeout" => negotiation_timeout: Duration =
        Listener::default().negotiation_timeout, from "10ms" to "5m";
}
