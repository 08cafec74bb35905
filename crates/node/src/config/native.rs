//! The native door: every operation, for clients, RPC and the bench.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{ByteSize, limits};

use super::HostPort;
use super::value::{NONE, Value};

options! {
    /// The native door: every operation, for clients, RPC and the bench.
    native, "Native door";

    /// Address to listen on; `none` shuts the TCP door.
    "native.listen" => listen: Option<HostPort> = Some(HostPort::loopback(7400));

    /// Unix socket to listen on; `auto` is `telpher.sock` in the data directory, `none` is no
    /// socket.
    "native.socket" => socket: Socket = Socket::Auto;

    /// Largest payload of a frame that is accepted; a larger one is answered with an error that
    /// names this limit.
    "native.frame_size_max" => frame_size_max: ByteSize = limits::FRAME_SIZE_MAX,
        from "1KiB" to "1GiB";

    /// Calls that one connection may have in flight.
    "native.calls_max" => calls_max: u32 = limits::CALLS_IN_FLIGHT_MAX, from "1" to "1048576";

    /// One-way messages that one connection may send ahead of what was taken from it.
    "native.credit_messages" => credit_messages: u32 = 8_192, from "1" to "16777216";

    /// Bytes that one connection may send ahead of what was taken from it.
    "native.credit_bytes" => credit_bytes: ByteSize = ByteSize::mebibytes(8),
        from "1KiB" to "16GiB";

    /// Bytes that may wait for one connection that does not read before messages to it are refused;
    /// four times that much, and the connection is given up.
    "native.queue_size_max" => queue_size_max: ByteSize = ByteSize::mebibytes(16),
        from "64KiB" to "16GiB";

    /// Silence after which a peer is asked for a sign of life; two and a half times that without
    /// one, and the peer is taken for dead.
    "native.keepalive" => keepalive: Duration = Duration::from_secs(15), from "100ms" to "1h";

    /// Connections that the door keeps open; one more is answered with an error.
    "native.connections_max" => connections_max: u32 = 20_000, from "1" to "1000000";

    /// Subscriptions that one connection may hold.
    "native.subscriptions_per_connection_max" => subscriptions_per_connection_max: u32 =
        limits::SUBSCRIPTIONS_PER_CONNECTION_MAX, from "1" to "1048576";

    /// Time that a new connection has for its handshake.
    "native.handshake_timeout" => handshake_timeout: Duration = Duration::from_secs(5),
        from "10ms" to "5m";
}

/// Where the Unix socket lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// `telpher.sock` in the data directory.
    Auto,
    /// At a path of one's own.
    At(PathBuf),
    /// There is none.
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
