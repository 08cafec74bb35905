//! Options of the native listener.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{ByteSize, limits};

use super::HostPort;
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
    "native.frame_size_max" => frame_size_max: ByteSize = limits::FRAME_SIZE_MAX,
        from "1KiB" to "1GiB";

    /// Maximum number of calls in flight per connection.
    "native.calls_max" => calls_max: u32 = limits::CALLS_IN_FLIGHT_MAX, from "1" to "1048576";

    /// Number of one-way messages that a connection may send before the node has processed them.
    "native.credit_messages" => credit_messages: u32 = 8_192, from "1" to "16777216";

    /// Bytes that a connection may send before the node has processed them.
    "native.credit_bytes" => credit_bytes: ByteSize = ByteSize::mebibytes(8),
        from "1KiB" to "16GiB";

    /// Bytes that wait for a connection that does not read, before messages to it are dropped; at
    /// four times this size the connection is closed.
    "native.queue_size_max" => queue_size_max: ByteSize = ByteSize::mebibytes(16),
        from "64KiB" to "16GiB";

    /// Time of silence after which a peer is pinged; after two and a half times this time it is
    /// disconnected.
    "native.keepalive" => keepalive: Duration = Duration::from_secs(15), from "100ms" to "1h";

    /// Maximum number of open connections; a further one is answered with an error.
    "native.connections_max" => connections_max: u32 = 20_000, from "1" to "1000000";

    /// Maximum number of subscriptions per connection.
    "native.subscriptions_per_connection_max" => subscriptions_per_connection_max: u32 =
        limits::SUBSCRIPTIONS_PER_CONNECTION_MAX, from "1" to "1048576";

    /// Time for the handshake of a new connection.
    "native.handshake_timeout" => handshake_timeout: Duration = Duration::from_secs(5),
        from "10ms" to "5m";
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
