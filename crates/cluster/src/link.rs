//! Connections between nodes.
//!
//! Two nodes have a connection for the append streams of all shards, one for heartbeats and votes, so
//! that a full log connection delays no heartbeat, and one for calls. The node with the lower id
//! dials all three.
//! Either side sends requests on them; an answer finds its caller by its id.
//!
//! A connection begins with a [handshake](hello) in which each side proves that it knows the
//! cluster's key, and names the node that it means. Members then show each other what they have
//! recorded of the other, and what they have on disk ([admission]). Everything after that is
//! [frames](frame).

mod admission;
mod answer;
mod append;
mod call;
mod calling;
mod checks;
mod connection;
mod frame;
mod handshake;
mod hello;
mod join;
mod key;
mod message;
mod network;
mod peers;
mod records;
mod reporting;
mod reports;
mod serve;

pub(crate) use self::admission::Admission;
pub use self::admission::Outdated;
pub(crate) use self::call::CallServer;
pub use self::call::{CALL_SIZE_MAX, CallError, Services};
pub(crate) use self::checks::{check_decoders, check_frame};
pub use self::handshake::HandshakeError;
pub(crate) use self::hello::Identity;
pub use self::hello::Refusal;
pub use self::join::{Image, JoinError, Joined, join};
pub(crate) use self::join::{JoinAnswer, answer as answer_join, read_request, send_image};
pub use self::key::{Key, KeyError};
pub(crate) use self::network::Network;
pub use self::peers::Dialer;
pub(crate) use self::peers::Peers;
pub use self::records::OutdatedError;
pub use self::reports::ReportFile;
pub(crate) use self::reports::Reports;
pub(crate) use self::serve::Server;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Heartbeats and votes.
    Pulse = 1,
    /// Append streams.
    Log = 2,
    /// Calls, which may take long.
    Bulk = 3,
    /// The bytes of one client, which a member passes to the leader.
    Pipe = 4,
    /// A node that asks to become a member. It has no id yet and knows no cluster.
    Join = 5,
}

impl Channel {
    /// All channels.
    pub(crate) const ALL: [Channel; 5] = [
        Channel::Pulse,
        Channel::Log,
        Channel::Bulk,
        Channel::Pipe,
        Channel::Join,
    ];

    /// The channels between members that are kept connected.
    pub(crate) const KEPT: [Channel; 3] = [Channel::Pulse, Channel::Log, Channel::Bulk];

    /// Returns whether either node may dial, and not only the one with the lower id.
    pub(crate) fn is_of_either(self) -> bool {
        matches!(self, Channel::Pipe | Channel::Join)
    }

    fn from_number(number: u8) -> Option<Channel> {
        Channel::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// Returns the limit on the body of a frame, in bytes.
    pub(crate) fn body_size_max(self) -> usize {
        match self {
            Channel::Pulse => 1 << 20,
            Channel::Bulk => CALL_SIZE_MAX + 1,
            // There are no frames on the others.
            Channel::Pipe | Channel::Join => 0,
            // The largest segment is 1 GiB, and its largest block; 64 MiB is the default.
            Channel::Log => 128 << 20,
        }
    }
}
