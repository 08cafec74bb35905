//! Options of the native listener.

use std::path::{Path, PathBuf};
use std::time::Duration;

use door_native::Options as Listener;
use messaging::Limits;
use model::ByteSize;

use super::HostPort;
use super::units::{count, size};
use super::value::{NONE, Value};

options! {
    /// The native listener: all operations, for the client libraries and the command line.
    native, "Native listener";

    /// TCP address to listen on; `none` disables it.
    "native.listen" => listen: Option<HostPort> = Some(HostPort::loopback(7400));

    /// Unix socket to listen on; `auto` is `telpher.sock` in the data directory, `none` disables
    /// it.
    "native.socket" => socket: Socket = Socket::Auto;

    /// Maximum payload of a frame; a larger frame is answered with an error that names this limit.
    "native.frame_size_max" => frame_size_max: ByteSize =
        ByteSize::bytes(u64::from(Listener::default().frame_size_max)), from "1KiB" to "1GiB";

    /// Maximum number of calls in flight per connection.
    "native.calls_max" => calls_max: u32 = Limits::default().calls_max, from "1" to "1048576";

    /// Number of one-way messages that a connection may send before the node has processed them.
    "native.credit_messages" => credit_messages: u32 = Limits::default().credit_messages,
        from "1" to "16777216";

    /// Bytes that a connection may send before the node has processed them.
    "native.credit_bytes" => credit_bytes: ByteSize =
        ByteSize::bytes(Limits::default().credit_bytes), from "1KiB" to "16GiB";

    /// Bytes that wait for a connection that does not read, before messages to it are dropped; at
    /// four times this size the connection is closed.
    "native.queue_size_max" => queue_size_max: ByteSize =
        size(Listener::default().queue_size_max), from "64KiB" to "16GiB";

    /// Time of silence after which a peer is pinged; after two and a half times this time it is
    /// disconnected.
    "native.keepalive" => keepalive: Duration = Listener::default().keepalive, from "100ms" to "1h";

    /// Maximum number of open connections; a further one is answered with an error.
    "native.connections_max" => connections_max: u32 =
        count(Limits::default().connections_max), from "1" to "1000000";

    /// Maximum number of subscriptions per connection.
    "native.subscriptions_per_connection_max" => subscriptions_per_connection_max: u32 =
        count(Limits::default().subscriptions_per_connection_max), from "1" to "1048576";

    /// Time for the handshake of a new connection.
    "native.handshake_timeout" => handshake_timeout: Duration =
        Listener::default().handshake_timeout, from "10ms" to "5m";
}

/// The path of the Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// `telpher.sock` in the data directory.
    Auto,
    /// A configured path.
    At(PathBuf),
    /// No Unix socket.
    Off,
}

impl Socket {
    /// The socket's path, given the data directory.
    pub fn path(&self, data_dir: &Path) -> Option<PathBuf> {
        match self {
            Self::Auto => Some(data_dir.join("telpher.sock")),
            Self::At(path) => Some(path.clone()),
            Self::Off => None,
        }
    }
}

impl Value for Socket {
    const FORM: &'static str = "PATH";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            NONE => Ok(Self::Off),
            path => PathBuf::parse(path).map(Self::At),
        }
    }

    fn print(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::At(path) => path.print(),
            Self::Off => NONE.to_owned(),
        }
    }
}
